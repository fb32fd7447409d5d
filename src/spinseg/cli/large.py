"""`spinseg large`: one picture that may be larger than memory."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from spinseg.cli.options import ChannelAxis, Dask, IntensityRange, Jobs, Json, Quiet, Rng, channel_axis_of, setting


def large(
    image: Annotated[
        Path,
        typer.Argument(
            help="One picture: a folder of Zarr or OME-Zarr, a (tiled) TIFF file, or any other that fits into memory."
        ),
    ],
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
    channel_axis: ChannelAxis = "auto",
    intensity_range: IntensityRange = None,
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
        channel_axis=channel_axis_of(channel_axis),
        intensity_range=intensity_range,
        tile=tile,
        rng=rng,
        jobs=jobs,
        dask=dask,
        progress=not quiet,
    )
    if found.reading.otherwise and not quiet:
        print(f"{image} was read as {found.reading}; {found.reading.otherwise}", file=sys.stderr)
    if as_json:
        print((out / "result.json").read_text(encoding="utf-8"))
    elif not quiet:
        print(f"{found.n_regions} regions of {found.model.graph.n_sites} sites")
        print(f"Look at {(out / 'overview.png').resolve()}; the labels are in {(out / 'labels.zarr').resolve()}")
