"""`spinseg info`, `large`, `demo` and `app`."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from spinseg._errors import MissingExtra, error_line, is_expected
from spinseg._run.atomic import printable
from spinseg.cli.options import (
    WRONG_INPUT,
    ChannelAxis,
    Dask,
    IntensityRange,
    Jobs,
    Json,
    Quiet,
    Seed,
    channel_axis_of,
    print_error,
)

DEMO_FOLDER = Path("spinseg-demo")


def info(
    images: Annotated[list[str], typer.Argument(help="Images, as for `spinseg segment`.")],
    channel_axis: ChannelAxis = "auto",
    intensity_range: IntensityRange = None,
    as_json: Json = False,
) -> None:
    """Say how files are read: pixels, channels, number type and intensities, and how to read them otherwise."""
    from spinseg.image.io import read_picture

    axis, failed = channel_axis_of(channel_axis), False
    rows: list[dict[str, Any]] = []
    for path in images:
        try:
            reading = read_picture(path, channel_axis=axis, intensity_range=intensity_range).reading
            assert reading is not None
        except Exception as error:
            if not is_expected(error):
                raise
            failed, line = True, error_line(error)
            print_error(line if printable(path) in line else f"{printable(path)}: {line}")
            rows.append({"source": path, "error": line})
            continue
        rows.append({"source": path, "error": None, **reading.to_json()})
        if not as_json:
            print(f"{printable(path)}: {reading}" + (f"; {reading.otherwise}" if reading.otherwise else ""))
    if as_json:
        print(json.dumps({"images": rows}))
    if failed:
        raise SystemExit(WRONG_INPUT)


def large(
    image: Annotated[
        Path,
        typer.Argument(help="A folder of Zarr or OME-Zarr, a (tiled) TIFF file, or any other that fits into memory."),
    ],
    out: Annotated[Path, typer.Option(help="Folder for the results, and for what resuming needs.")] = Path(
        "spinseg-large"
    ),
    n_sites: Annotated[
        int | None, typer.Option(help="About how many sites; by default one for 190 pixels, up to 200000.")
    ] = None,
    detail: Annotated[float, typer.Option(help="From 0, coarse, to 1, fine.")] = 0.5,
    sweeps: Annotated[int, typer.Option(help="Number of sweeps of each chain.")] = 200,
    chains: Annotated[int, typer.Option(help="Number of chains.")] = 1,
    channel_axis: ChannelAxis = "auto",
    intensity_range: IntensityRange = None,
    tile: Annotated[int, typer.Option(help="Pixels along each side of a tile.")] = 2048,
    seed: Seed = 0,
    jobs: Jobs = None,
    dask: Dask = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Segment one image that may be larger than memory.

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
        rng=seed,
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


def demo(out: Annotated[Path, typer.Option(help="Folder for the results.")] = DEMO_FOLDER, seed: Seed = 0) -> None:
    """Segment a bundled image, and say where to look."""
    from spinseg.cli.segment import segment_and_print
    from spinseg.pictures import PICTURES

    picture = PICTURES["coffee"]
    print(f"Segmenting {picture.path.name}, {picture.credit}.", file=sys.stderr)
    # Another folder may hold a result of the user's own.
    segment_and_print([str(picture.path)], out, {"rng": seed}, {"overwrite": out == DEMO_FOLDER})
    print(f"Look at {(out / 'coffee' / 'report.html').resolve()}")


def app(
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Port to listen at; any free one by default.")
    ] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the address only.")] = False,
) -> None:
    """Open the web app: drop an image, move sliders, and watch the chains work."""
    try:
        from spinseg.app.server import serve
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("starlette", "uvicorn", "anyio"):
            raise
        raise MissingExtra('the web app needs Starlette and uvicorn: pip install "spinseg[web]"') from None
    serve(port, open_browser=not no_browser)
