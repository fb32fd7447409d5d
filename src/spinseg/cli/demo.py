"""`spinseg demo`: a picture that comes with the package."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from spinseg.cli.options import Rng
from spinseg.cli.segment import segment_and_print

FOLDER = Path("spinseg-demo")


def demo(out: Annotated[Path, typer.Option(help="Folder for the results.")] = FOLDER, rng: Rng = 0) -> None:
    """Segment a bundled picture, and say where to look."""
    from spinseg.pictures import PICTURES

    picture = PICTURES["coffee"]
    print(f"Segmenting {picture.path.name}, {picture.credit}.", file=sys.stderr)
    # Another folder may hold a result of the user's own.
    segment_and_print([str(picture.path)], out, {"rng": rng}, {"overwrite": out == FOLDER})
    print(f"Look at {(out / 'coffee' / 'report.html').resolve()}")
