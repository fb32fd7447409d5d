"""The command `spinseg`: one file for each of its commands, which parse, call and print."""

import os
import sys

from spinseg._run import THREAD_VARIABLES


def main() -> None:
    """Run the command, with one thread of NumPy's libraries: further ones would wait for work without rest."""
    _open_closed_streams()
    for variable in THREAD_VARIABLES:
        os.environ.setdefault(variable, "1")
    try:
        from spinseg.cli.program import app, run  # which loads NumPy

        run(app)
    except KeyboardInterrupt:  # while it loads; `run` takes care of all others
        raise SystemExit(130) from None


def _open_closed_streams() -> None:
    """Open the null device for streams that the shell closed, as by ``2>&-``.

    Otherwise the next file that is opened takes their place, and what a library prints ends up in that file.
    """
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)  # which gets the lowest free number
            os.set_inheritable(null, null == descriptor)
            setattr(sys, name, os.fdopen(null, "r" if name == "stdin" else "w"))
