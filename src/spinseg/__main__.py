"""`python -m spinseg` is the command `spinseg`."""

from spinseg.cli import main

if __name__ == "__main__":
    main()
