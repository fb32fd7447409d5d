"""The command `spinseg`: its commands, its option --debug, and its exit codes."""

import logging
import signal
import sys
import warnings
from collections.abc import Callable
from typing import Annotated

import typer

from spinseg._errors import LOG, error_line, is_expected
from spinseg._version import VERSION
from spinseg.cli.app import open_page
from spinseg.cli.demo import demo
from spinseg.cli.errors import BUG, INTERRUPTED, WRONG_INPUT, print_error
from spinseg.cli.info import info
from spinseg.cli.large import large
from spinseg.cli.segment import segment

EXIT_CODES = (
    f"Exit codes: 0 done, {WRONG_INPUT} wrong input, {BUG} a bug, {INTERRUPTED} interrupted; what is finished is kept."
)
EXAMPLES = {
    "segment": (
        "spinseg segment photo.jpg",
        "spinseg segment *.jpg --out results --jobs 4 --resume",
        "spinseg segment cells.ome.tif --detail 0.9 --geojson",
        "spinseg segment brain.nii.gz --preset classes --mask brain_mask.nii.gz",
    ),
    "info": ("spinseg info scan.tif stack.ome.tif",),
    "large": ("spinseg large slide.ome.tif --out slide --jobs 4",),
    "demo": ("spinseg demo",),
    "app": ("spinseg app", "spinseg app --port 8800 --no-browser"),
}

# Help is plain text: in boxes the columns of so many options are a few letters wide.
app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)


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
    """Bayesian nonparametric image segmentation: no number of clusters is asked for, and the answer is a posterior."""
    if debug:
        LOG.setLevel(logging.DEBUG)
        LOG.addHandler(logging.StreamHandler())


COMMANDS: dict[str, Callable[..., None]] = {
    "segment": segment,
    "info": info,
    "large": large,
    "demo": demo,
    "app": open_page,
}
for name, command in COMMANDS.items():
    app.command(name, epilog="\n".join(["\b", "Examples:", *(f"  {line}" for line in EXAMPLES[name])]))(command)


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
