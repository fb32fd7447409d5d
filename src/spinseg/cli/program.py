"""The command `spinseg`: its commands, its option --debug, and its exit codes."""

import logging
import signal
import sys
from typing import Annotated

import typer

from spinseg._errors import LOG, error_line, is_expected
from spinseg.cli.app import open_page
from spinseg.cli.demo import demo
from spinseg.cli.errors import BUG, INTERRUPTED, WRONG_INPUT, print_error
from spinseg.cli.evaluate import evaluate
from spinseg.cli.info import info
from spinseg.cli.large import large
from spinseg.cli.reproduce import reproduce
from spinseg.cli.segment import segment

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@app.callback()
def spinseg(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of a bug, for a report of it.")] = False,
) -> None:
    """Bayesian nonparametric image segmentation: no number of clusters is asked for, and the answer is a posterior."""
    if debug:
        LOG.setLevel(logging.DEBUG)
        LOG.addHandler(logging.StreamHandler())


for command in (segment, info, large, demo, evaluate, reproduce):
    app.command()(command)
app.command("app")(open_page)


def main() -> None:
    """Run the command. Wrong input is one line and exit code 2; a bug is one that asks to report it, and 70."""
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


def _debug_first(arguments: list[str]) -> list[str]:
    """The arguments with --debug in front: it is an option of the program, but may be written at the end."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    others = [word for word in arguments[:end] if word != "--debug"]
    return ["--debug"] * (len(others) < end) + others + arguments[end:]
