"""The command `spinseg`: its commands, its option --debug, and its exit codes."""

import logging
import signal
import sys
import warnings
from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup

from spinseg._errors import LOG, error_line, is_expected
from spinseg._version import VERSION
from spinseg.cli.options import BUG, INTERRUPTED, WRONG_INPUT, print_error, with_preset_options

EXIT_CODES = (
    f"Exit codes: 0 done, {WRONG_INPUT} wrong input, {BUG} a bug, {INTERRUPTED} interrupted; what is finished is kept."
)


class Command(NamedTuple):
    """Where a command is defined, what it does, and examples of it."""

    module: str
    summary: str
    examples: tuple[str, ...]


COMMANDS = {
    "segment": Command(
        "spinseg.cli.segment",
        "Segment images, and write label images, overlays and reports.",
        (
            "spinseg segment photo.jpg",
            "spinseg segment *.jpg --out results --jobs 4 --resume",
            "spinseg segment cells.ome.tif --detail 0.9 --geojson",
            "spinseg segment brain.nii.gz --preset classes --mask brain_mask.nii.gz",
        ),
    ),
    "info": Command("spinseg.cli.commands", "Say how files are read.", ("spinseg info scan.tif stack.ome.tif",)),
    "large": Command(
        "spinseg.cli.commands",
        "Segment one image that may be larger than memory.",
        ("spinseg large slide.ome.tif --out slide --jobs 4",),
    ),
    "demo": Command("spinseg.cli.commands", "Segment a bundled image, and say where to look.", ("spinseg demo",)),
    "app": Command(
        "spinseg.cli.commands", "Open the web app.", ("spinseg app", "spinseg app --port 8800 --no-browser")
    ),
}


class Commands(TyperGroup):
    """The commands, each loaded when it is called."""

    def list_commands(self, context: Any) -> list[str]:
        """Return the names."""
        return list(COMMANDS)

    def get_command(self, context: Any, name: str) -> Any:
        """Return a command, or None for an unknown name."""
        if name not in COMMANDS:
            return None
        command = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None, add_completion=False)
        lines = [f"  {line}" for line in COMMANDS[name].examples]
        function = with_preset_options(getattr(import_module(COMMANDS[name].module), name))
        command.command(name, epilog="\n".join(["\b", "Examples:", *lines]))(function)
        return typer.main.get_command(command)

    def format_commands(self, context: Any, formatter: Any) -> None:
        """Write a line for each command, without loading it."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.summary) for name, command in COMMANDS.items()])


# Help is plain text: in boxes the columns of the many options are a few letters wide.
app = typer.Typer(cls=Commands, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)


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
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of a bug, for a report of it.")] = False,
) -> None:
    """Bayesian nonparametric image segmentation: the number of regions is inferred, and you see how sure it is."""
    if debug:
        LOG.setLevel(logging.DEBUG)
        LOG.addHandler(logging.StreamHandler())


def main() -> None:
    """Run the command."""
    run(app)


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
        bug = not is_expected(error)
        print_error(error_line(error), bug=bug)
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
