"""Options that several commands have."""

from typing import Annotated, Any, Literal

import typer

from spinseg._validation import invalid
from spinseg.segmentation.settings import Settings


def setting(name: str) -> Any:
    """The option of a field of `Settings`, with its names, help and choices."""
    about = Settings.__dataclass_fields__[name].metadata
    names = about["options"] or [f"--{name.replace('_', '-')}"]
    return typer.Option(*names, help=about["help"], metavar="|".join(about["choices"]) or None)


def channel_axis_of(text: str) -> int | Literal["auto"] | None:
    """The axis of channels that an option names: a number, none, or auto."""
    if text == "auto":
        return "auto"
    if text == "none":
        return None
    try:
        return int(text)
    except ValueError:
        invalid("channel_axis", "be auto, none or the number of an axis", text)


ChannelAxis = Annotated[
    str,
    typer.Option(
        metavar="auto|none|AXIS",
        help="Axis of the channels, in the order of the file, counted from 0; none for gray pictures and volumes.",
    ),
]
IntensityRange = Annotated[
    tuple[float, float] | None,
    typer.Option(metavar="LOW HIGH", help="Numbers of no and of full intensity, instead of those inferred."),
]
Rng = Annotated[int, typer.Option("--rng", "--seed", help="Seed: the same seed gives the same result.")]
Jobs = Annotated[int | None, typer.Option(help="Tasks at a time, one processor each; by default all processors.")]
Dask = Annotated[str | None, typer.Option(help="Address of a Dask scheduler, to work on its cluster.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print errors only.")]
