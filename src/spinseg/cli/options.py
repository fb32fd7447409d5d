"""Options that several commands have, those of presets, exit codes, and how errors are printed."""

import inspect
import sys
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, Literal

import typer

from spinseg._validation import invalid

WRONG_INPUT, BUG, INTERRUPTED = 2, 70, 130  # 70 is EX_SOFTWARE of sysexits.h


def print_error(line: str, *, bug: bool = False) -> None:
    """Print a line to standard error; for a bug it says how to see the traceback."""
    hint = " (spinseg --debug ... shows its traceback)" if bug else ""
    print(f"spinseg: {line}{hint}", file=sys.stderr, flush=True)


def with_preset_options(command: Callable[..., None]) -> Callable[..., None]:
    """A command that takes ``**options``, with an option for each option of a preset in their place."""
    *own, last = inspect.signature(command).parameters.values()
    if last.kind is not inspect.Parameter.VAR_KEYWORD:
        return command
    import spinseg.segmentation.presets  # noqa: F401 (makes them known)
    from spinseg.segmentation.presets.preset import Preset

    @wraps(command)
    def complete(**given: Any) -> None:
        command(**given)

    kinds = {name: kind.options() for name, kind in Preset.known.items()}
    for name in dict.fromkeys(name for options in kinds.values() for name in options):
        having = [preset for preset, options in kinds.items() if name in options]
        abouts = [kinds[preset][name] for preset in having]
        choices = dict.fromkeys(choice for about in abouts for choice in about.choices)
        help = abouts[0].help + ("" if len(having) == len(kinds) else f" ({', '.join(having)})")
        flag = f"--{name.replace('_', '-')}"
        flags = [f"{flag}/--no-{flag[2:]}"] if abouts[0].kind is bool else [flag]
        option = typer.Option(*flags, help=help, metavar="|".join(choices) or None)
        kind = Annotated[abouts[0].kind | None, option]  # type: ignore[valid-type]
        own.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind))
    complete.__signature__ = inspect.Signature(own)  # type: ignore[attr-defined]
    complete.__annotations__ = {parameter.name: parameter.annotation for parameter in own}
    return complete


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
        help="Axis of the channels, in the order of the file, counted from 0; none for gray images and volumes.",
    ),
]
IntensityRange = Annotated[
    tuple[float, float] | None,
    typer.Option(metavar="LOW HIGH", help="Numbers of no and of full intensity, instead of those inferred."),
]
Seed = Annotated[int, typer.Option("--seed", help="The same seed gives the same result.")]
Jobs = Annotated[int | None, typer.Option(help="Tasks at a time, one processor each; by default all processors.")]
Dask = Annotated[str | None, typer.Option(help="Address of a Dask scheduler, to work on its cluster.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print errors only.")]
