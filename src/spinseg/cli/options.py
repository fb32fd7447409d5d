"""Options that several commands have."""

from typing import Annotated, Any

import typer

from spinseg.segmentation.settings import Settings


def setting(name: str) -> Any:
    """The option of a field of `Settings`, with its names, help and choices."""
    about = Settings.__dataclass_fields__[name].metadata
    names = about["options"] or [f"--{name.replace('_', '-')}"]
    return typer.Option(*names, help=about["help"], metavar="|".join(about["choices"]) or None)


Rng = Annotated[int, typer.Option("--rng", "--seed", help="Seed: the same seed gives the same result.")]
Jobs = Annotated[int | None, typer.Option(help="Tasks at a time, one processor each; by default all processors.")]
Dask = Annotated[str | None, typer.Option(help="Address of a Dask scheduler, to work on its cluster.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print errors only.")]
