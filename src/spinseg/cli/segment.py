"""`spinseg segment`: pictures into folders with label images, overlays and reports."""

import json
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spinseg._errors import LOG
from spinseg._run.atomic import printable
from spinseg.cli.errors import BUG, INTERRUPTED, WRONG_INPUT, print_error
from spinseg.cli.options import ChannelAxis, IntensityRange, Json, Quiet, Rng, channel_axis_of, setting
from spinseg.cli.tables import print_outcomes
from spinseg.segmentation.settings import OPTIONAL_FILES, given_settings

if TYPE_CHECKING:
    from spinseg.segmentation.batch import Outcome


def segment(
    images: Annotated[
        list[str],
        typer.Argument(help="Pictures: PNG, JPEG, GIF, WebP, BMP, TIFF, NPY, Zarr; with an extra NIfTI."),
    ],
    out: Annotated[Path, typer.Option(help="Folder for the results, one folder in it for each picture.")] = Path(
        "spinseg-out"
    ),
    preset: Annotated[str, setting("preset")] = "photo",
    prior: Annotated[str | None, setting("prior")] = None,
    concentration: Annotated[
        float | None, typer.Option("--concentration", "--alpha", help="Concentration of the prior (also --alpha).")
    ] = None,
    discount: Annotated[float | None, typer.Option(help="Discount of Pitman-Yor.")] = None,
    n_labels: Annotated[
        int | None,
        typer.Option(
            "--n-labels",
            "--labels",
            help="Most clusters (potts, finite), or their mean (mfm); also --labels. The photo preset cuts clusters "
            "into regions, so that there may be more labels.",
        ),
    ] = None,
    min_size: Annotated[int | None, typer.Option(help="Fewest sites in a cluster.")] = None,
    max_size: Annotated[int | None, typer.Option(help="Most sites in a cluster.")] = None,
    beta: Annotated[float | None, setting("beta")] = None,
    n_sites: Annotated[int | None, setting("n_sites")] = None,
    sites: Annotated[str | None, setting("sites")] = None,
    connectivity: Annotated[int | None, setting("connectivity")] = None,
    codebook: Annotated[str | None, setting("codebook")] = None,
    n_words: Annotated[int | None, setting("n_words")] = None,
    count_weight: Annotated[float | None, setting("count_weight")] = None,
    phi: Annotated[float | None, setting("phi")] = None,
    kappa: Annotated[float | None, setting("kappa")] = None,
    regions: Annotated[bool | None, setting("regions")] = None,
    detail: Annotated[float | None, setting("detail")] = None,
    estimate: Annotated[str | None, setting("estimate")] = None,
    moves: Annotated[str | None, setting("moves")] = None,
    lam: Annotated[float | None, setting("lam")] = None,
    init: Annotated[str | None, setting("init")] = None,
    sweeps: Annotated[int | None, setting("sweeps")] = None,
    seconds: Annotated[float | None, setting("seconds")] = None,
    chains: Annotated[int | None, setting("chains")] = None,
    start_label: Annotated[int | None, setting("start_label")] = None,
    rng: Rng = 0,
    mask: Annotated[str | None, typer.Option(help="Picture that is not black where to segment.")] = None,
    channel_axis: ChannelAxis = "auto",
    intensity_range: IntensityRange = None,
    seeds: Annotated[
        str | None, typer.Option(help="Label image: equal numbers above 0 are kept together, others apart (photo).")
    ] = None,
    geojson: Annotated[bool, typer.Option("--geojson", help="Write the regions as polygons, regions.geojson.")] = False,
    svg: Annotated[bool, typer.Option("--svg", help="Write the outlines as a drawing, outlines.svg.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Write the table of regions, regions.csv.")] = False,
    probabilities: Annotated[
        bool,
        typer.Option("--probabilities", help="Write the boundary probability as numbers, boundary_probability.tif."),
    ] = False,
    jobs: Annotated[int | None, typer.Option(help="Pictures at a time, one processor each; 1 by default.")] = None,
    dask: Annotated[
        str | None,
        typer.Option(
            help="Address of a Dask scheduler, to work on its cluster. Its workers read and write the files: they must "
            "see them under the same absolute paths."
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Skip pictures that are done already, and do again those that were cut short. Results of another "
            "picture, seed, settings or version are kept, with an error; --overwrite replaces them.",
        ),
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace results that are there already.")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Segment pictures, and write label images, overlays and reports.

    What is not given is the preset's. Pictures that cannot be read get a line, and the others are done.
    """
    given = dict(locals())
    from spinseg.segmentation.prior_names import prior_named

    of_prior = ("concentration", "discount", "n_labels", "min_size", "max_size")
    others = {name: given[name] for name in ("sites", "beta", "regions") if given[name] is not None}
    given["prior"] = prior_named(prior, preset, others=others, **{name: given[name] for name in of_prior})
    given["init"] = tuple(init.split(",")) if init and "," in init else init
    keywords = given_settings(given) | {"rng": rng, "channel_axis": channel_axis_of(channel_axis)}
    keywords |= {name: given[name] for name in ("mask", "seeds", "intensity_range") if given[name] is not None}
    how: dict[str, Any] = {"jobs": jobs, "dask": dask, "resume": resume, "overwrite": overwrite}
    wanted = zip(OPTIONAL_FILES, (geojson, svg, csv, probabilities), strict=True)
    how |= {"also": [name for name, is_wanted in wanted if is_wanted]}
    segment_and_print(images, out, keywords, how, as_json, quiet)


def segment_and_print(
    images: list[str],
    out: Path,
    keywords: dict[str, Any],
    how: dict[str, Any],
    as_json: bool = False,
    quiet: bool = False,
) -> None:
    """Segment pictures, print what became of each, and exit with the code of the worst."""
    from spinseg.segmentation.batch import segment_files

    outcomes, code = {}, 0
    try:
        for index, outcome in segment_files(images, out, keywords, **how, progress=not quiet):
            outcomes[index] = outcome
            if not quiet:
                _print_doubt(outcome)
            if outcome.error is not None:
                code = BUG if outcome.traceback else max(code, WRONG_INPUT)
                print_error(outcome.error, bug=bool(outcome.traceback))
                if outcome.traceback:
                    LOG.debug("%s", outcome.traceback)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # another Ctrl-C must not keep the outcomes from being printed
        code = INTERRUPTED
        print_error("interrupted; what is finished is saved")
    ordered = [outcomes[index] for index in sorted(outcomes)]
    if as_json:
        print(json.dumps({"images": [_as_json(outcome) for outcome in ordered]}))
    elif not quiet:
        print_outcomes(ordered)
    if code:
        raise SystemExit(code)


def _print_doubt(outcome: "Outcome") -> None:
    """Say how a picture was read, and how to read it otherwise, where the file did not say which."""
    found = outcome.summary or {}
    if found.get("read_otherwise") and not outcome.done_before:
        line = f"{printable(outcome.source)} was read as {found['read_as']}; {found['read_otherwise']}"
        print(line, file=sys.stderr, flush=True)


def _as_json(outcome: "Outcome") -> dict[str, Any]:
    """One picture without its regions and boundaries, which its result.json has."""
    left_out = ("regions", "boundaries")
    found = {name: value for name, value in (outcome.summary or {}).items() if name not in left_out}
    facts = {"folder": outcome.folder, "seconds": round(outcome.seconds, 3), "interrupted": outcome.interrupted}
    facts |= {"done_before": outcome.done_before}
    return {"source": outcome.source, "error": outcome.error, **facts, **found}
