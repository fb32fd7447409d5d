"""Settings written down: as the Python that repeats a segmentation, and as result.json has them."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from spinseg.image.layout import ChannelAxis, IntensityRange
from spinseg.model.priors import PartitionPrior
from spinseg.sampler.plan import DataDriven
from spinseg.segmentation.presets import changed_settings
from spinseg.segmentation.settings import Settings

LAST_LABELS = "found.chains.last_labels"  # the expression for where the chains of `found` ended


def python_call(
    settings: Settings,
    seed: int,
    source: str | None,
    channel_axis: ChannelAxis = "auto",
    mask: str | None = None,
    expressions: Mapping[str, str] = {},
    intensity_range: IntensityRange | None = None,
    seeds: str | dict[int, list[tuple[int, ...]]] | None = None,
) -> str:
    """The call of `segment` with these settings; `expressions` has the Python of those that are arrays."""
    arguments = [repr(source) if source else "image"]
    if settings.preset != "photo":
        arguments.append(repr(settings.preset))
    changes = {name: _as_python(name, value) for name, value in changed_settings(settings).items()} | dict(expressions)
    arguments += [f"{name}={text}" for name, text in changes.items()]
    if channel_axis != "auto":
        arguments.append(f"channel_axis={channel_axis}")
    if intensity_range is not None:
        low, high = (_as_python("intensity_range", number) for number in intensity_range)
        arguments.append(f"intensity_range=({low}, {high})")
    if mask is not None:
        arguments.append("mask=mask" if mask == "an array" else f"mask={mask!r}")
    if seeds is not None:
        arguments.append("seeds=seeds" if seeds == "an array" else f"seeds={seeds!r}")
    return f"ss.segment({', '.join([*arguments, f'rng={seed}'])})"


def plain_settings(settings: Settings) -> dict[str, str | int | float | bool | None]:
    """Settings by name, as result.json has them."""
    return {name: _as_json(name, value) for name, value in vars(settings).items()}


def _as_python(name: str, value: Any) -> str:
    """A setting as Python; an array is represented by the name of the setting."""
    if isinstance(value, np.generic):
        value = value.item()
    names = isinstance(value, (tuple, list)) and all(isinstance(item, str) for item in value)
    if isinstance(value, (str, int, float)) or names:
        return repr(value)
    return f"ss.{value!r}" if isinstance(value, (PartitionPrior, DataDriven)) else name


def _as_json(name: str, value: Any) -> str | int | float | bool | None:
    """A setting as a value of JSON; what is none, as Python."""
    if isinstance(value, np.generic):
        value = value.item()
    return value if isinstance(value, (str, int, float, bool, type(None))) else _as_python(name, value)
