"""`spinseg large`: one picture that may be larger than memory."""

from pathlib import Path
from typing import Annotated

import typer

from spinseg.cli.options import Dask, Jobs, Json, Quiet, Rng, setting


def large(
    image: Annotated[Path, typer.Argument(help="One picture: a folder of Zarr or OME-Zarr, or a (tiled) TIFF file.")],
    out: Annotated[Path, typer.Option(help="Folder for the results, and for what resuming needs.")] = Path(
        "spinseg-large"
    ),
    n_sites: Annotated[
        int | None,
        typer.Option("--n-sites", "--sites", help="About how many sites; by default one for 190 pixels, up to 200000."),
    ] = None,
    detail: Annotated[float, typer.Option(help="From 0, coarse, to 1, fine.")] = 0.5,
    sweeps: Annotated[int, setting("sweeps")] = 200,
    chains: Annotated[int, setting("chains")] = 1,
    tile: Annotated[int, typer.Option(help="Pixels along each side of a tile.")] = 2048,
    rng: Rng = 0,
    jobs: Jobs = None,
    dask: Dask = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Segment one picture that may be larger than memory.

    The same command after an interruption resumes where it stopped; no tile that was finished is done again.
    """
    from spinseg.segmentation.large.segment_large import segment_large

    found = segment_large(
        image,
        out,
        n_sites=n_sites,
        detail=detail,
        sweeps=sweeps,
        chains=chains,
        tile=tile,
        rng=rng,
        jobs=jobs,
        dask=dask,
        progress=not quiet,
    )
    if as_json:
        print((out / "result.json").read_text(encoding="utf-8"))
    elif not quiet:
        print(f"{found.n_regions} regions of {found.model.graph.n_sites} sites")
        print(f"Look at {(out / 'overview.png').resolve()}; the labels are in {(out / 'labels.zarr').resolve()}")
