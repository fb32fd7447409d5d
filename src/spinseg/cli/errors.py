"""Exit codes, and how errors are printed."""

import sys

WRONG_INPUT, BUG, INTERRUPTED = 2, 70, 130  # 70 is EX_SOFTWARE of sysexits.h


def print_error(line: str, *, bug: bool = False) -> None:
    """Print a line to standard error; for a bug it says how to see the traceback."""
    hint = " (spinseg --debug ... shows its traceback)" if bug else ""
    print(f"spinseg: {line}{hint}", file=sys.stderr, flush=True)
