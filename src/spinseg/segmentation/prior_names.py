"""Priors by the short names that the command and the page have for them."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from spinseg._validation import check_choice, invalid
from spinseg.model.priors import (
    DirichletProcess,
    FiniteDirichlet,
    MixtureOfFiniteMixtures,
    PartitionPrior,
    PitmanYor,
    Potts,
)
from spinseg.segmentation.presets import preset_for


class NamedPrior(NamedTuple):
    """How a prior is made, and its parameters with their defaults; a parameter whose default is None must be given."""

    make: Callable[..., PartitionPrior]
    defaults: dict[str, float | None]


def _mixture(n_labels: float, **others: Any) -> PartitionPrior:
    return MixtureOfFiniteMixtures(mean_labels=float(n_labels), **others)


PRIORS = {
    "dp": NamedPrior(DirichletProcess, {"concentration": 3.0}),
    "py": NamedPrior(PitmanYor, {"concentration": 3.0, "discount": 0.25}),
    "potts": NamedPrior(Potts, {"n_labels": None}),
    "finite": NamedPrior(FiniteDirichlet, {"concentration": 1.0, "n_labels": None}),
    "mfm": NamedPrior(_mixture, {"concentration": 1.0, "n_labels": 10.0}),
}


def prior_named(
    name: str | None, preset: str, *, others: Mapping[str, Any] = {}, **parameters: Any
) -> PartitionPrior | None:
    """The prior of a short name with the parameters that are given; None where nothing is given.

    The parameters are `concentration`, `discount` and `n_labels`, as far as a prior has them, and `min_size` and
    `max_size`; None is the default. Without a name, the size limits alone change the prior that the preset has with the
    `others` of the settings, and other parameters make a Pitman-Yor process where a discount is given, else a Dirichlet
    process.
    """
    given = {key: value for key, value in parameters.items() if value is not None}
    limits = {key: given.pop(key) for key in ("min_size", "max_size") if key in given}
    if name is None and not given:
        return preset_for(preset, others).prior.with_limits(**limits) if limits else None
    name = name or ("py" if "discount" in given else "dp")
    check_choice("prior", name, list(PRIORS))
    prior = PRIORS[name]
    for key, value in given.items():
        if key not in prior.defaults:
            invalid(key, f"be left out for the prior {name!r}", value)
    values = prior.defaults | given
    for key, default in values.items():
        if default is None:
            invalid(key, f"be given for the prior {name!r}", None)
    return prior.make(**values, **limits)
