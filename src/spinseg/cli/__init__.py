"""The command `spinseg`: one file for each of its commands, which parse, call and print."""

import os

from spinseg._run import THREAD_VARIABLES


def main() -> None:
    """Run the command, with one thread of NumPy's libraries: further ones would wait for work without rest."""
    for variable in THREAD_VARIABLES:
        os.environ.setdefault(variable, "1")
    from spinseg.cli.program import app, run  # which loads NumPy

    run(app)
