"""The command `spinseg`: one file for each of its commands, which parse, call and print."""

from spinseg.cli.program import main as main
