"""The command `spinseg`: its commands, its option --debug, and its exit codes."""

import logging
import signal
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from spinseg._errors import LOG, TaskBug, TaskFailure, error_line
from spinseg._run.atomic import print_line
from spinseg._version import VERSION
from spinseg.cli import commands
from spinseg.cli.commands import BUG, INTERRUPTED, WRONG_INPUT, Seed, print_error

EXIT_CODES = (
    f"Exit codes: 0 done, {WRONG_INPUT} wrong input, {BUG} bug, {INTERRUPTED} interrupted (finished work is kept)."
)
DEMO_FOLDER = Path("spinseg-demo")
# The options of `spinseg segment` in its help; those that are not here describe the model.
GROUPS = {
    "Common": ("out", "preset", "detail", "mask", "seeds", "seed", "quiet", "help"),
    "Output": ("geojson", "svg", "csv", "probabilities", "as_json", "start_label", "overwrite"),
    "Many images": ("jobs", "dask", "resume"),
    "Reading": ("channel_axis", "channel_kind", "intensity_range", "outlines", "one_each"),
    "Sampling": ("sweeps", "seconds", "chains", "moves", "init", "lam", "estimate"),
}


class Program(TyperGroup):
    """The command with all its commands."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command. Typer would take an EOFError for the end of its own input and print only "Aborted!"."""
        try:
            return super().invoke(ctx)
        except EOFError as error:
            raise TaskBug(error_line(error)) from error


# Help is plain text: in boxes the columns of the many options are a few letters wide.
app = typer.Typer(cls=Program, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)


class SegmentCommand(TyperCommand):
    """`spinseg segment`, with an option for each option of a preset."""

    def make_context(self, *given: Any, **extra: Any) -> Any:
        """Load the options only now: importing the presets takes a second."""
        from spinseg.cli.segment import segment, with_preset_options

        loaded = typer.Typer(add_completion=False)
        loaded.command()(with_preset_options(segment))
        complete = typer.main.get_command(loaded)
        self.params, self.callback = complete.params, complete.callback
        return super().make_context(*given, **extra)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write a section for each group of options."""
        groups = {name: group for group, names in GROUPS.items() for name in names}
        sections: dict[str, list[tuple[str, str]]] = {title: [] for title in ("Arguments", *GROUPS)}
        for param in self.get_params(ctx):
            model = "Arguments" if param.param_type_name == "argument" else "Model"
            title = groups.get(param.name or "", getattr(param, "rich_help_panel", None) or model)
            if record := param.get_help_record(ctx):
                sections.setdefault(title, []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


def examples(*lines: str) -> str:
    """The end of a command's help."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])


@app.command(
    cls=SegmentCommand,
    epilog=examples(
        "spinseg segment photo.jpg",
        "spinseg segment photos --out results --jobs 4 --resume",
        "spinseg segment cells.ome.tif --detail 0.9 --geojson",
        "spinseg segment cells.ome.tif --outlines 0 --one-each 1",
        "spinseg segment brain.nii.gz --preset classes --mask brain_mask.nii.gz",
    ),
)
def segment() -> None:
    """Segment images, and write label images, overlays and reports.

    If an image cannot be read, a line says why, and the others are segmented.
    """


@app.command(epilog=examples("spinseg demo"))
def demo(out: Annotated[Path, typer.Option(help="Folder for the results.")] = DEMO_FOLDER, seed: Seed = 0) -> None:
    """Segment a bundled image, and say where to look."""
    from spinseg.cli.segment import segment_and_print
    from spinseg.pictures import PICTURES

    picture = PICTURES["coffee"]
    print_line(f"Segmenting {picture.path.name}, {picture.credit}.")
    # Another folder may hold a result of the user's own.
    segment_and_print([str(picture.path)], out, {"rng": seed}, overwrite=out == DEMO_FOLDER)


app.command(epilog=examples("spinseg info scan.tif stack.ome.tif"))(commands.info)
app.command(epilog=examples("spinseg large slide.ome.tif --out slide --jobs 4"))(commands.large)
app.command(epilog=examples("spinseg app", "spinseg app --port 8800 --no-browser"))(commands.app)


def _show_tracebacks(wanted: bool) -> None:
    if wanted:
        LOG.setLevel(logging.DEBUG)
        LOG.addHandler(logging.StreamHandler())


Debug = Annotated[
    bool,
    typer.Option("--debug", help="Show the traceback of a bug, for a report of it.", callback=_show_tracebacks),
]


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"spinseg {VERSION}")
        raise typer.Exit


@app.callback(epilog=EXIT_CODES)
def spinseg(
    _: Annotated[
        bool,
        typer.Option("--version", help="Show the version and exit.", callback=_print_version, is_eager=True),
    ] = False,
    debug: Debug = False,
) -> None:
    """Segment images: spinseg infers the number of regions and quantifies the uncertainty."""


def run(app: typer.Typer) -> None:
    """Run a command. Wrong input is one line and exit code 2; a bug is one that asks to report it, and 70."""
    warnings.showwarning = _print_warning  # type: ignore[assignment]
    try:
        sys.argv[1:] = _debug_first(sys.argv[1:])
        app()
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # another Ctrl-C must not interrupt the exit
        raise SystemExit(INTERRUPTED) from None
    except Exception as error:
        LOG.debug("", exc_info=True)
        failure = TaskFailure.from_exception(error)
        bug = bool(failure.traceback)
        print_error(failure.why, failure.name, bug=bug)
        raise SystemExit(BUG if bug else WRONG_INPUT) from None


def _print_warning(message: Warning | str, category: type[Warning], *_: object) -> None:
    """Print what a user should know; what only a developer should know stays silent."""
    if issubclass(category, UserWarning):
        print_error(f"warning: {message}")


def _debug_first(arguments: list[str]) -> list[str]:
    """The arguments with --debug in front: it is an option of the program, but may be written at the end."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    others = [word for word in arguments[:end] if word != "--debug"]
    return ["--debug"] * (len(others) < end) + others + arguments[end:]
