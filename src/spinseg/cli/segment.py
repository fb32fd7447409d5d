"""`spinseg segment`: images into folders with label images, overlays and reports."""

import json
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spinseg._errors import LOG
from spinseg._run.atomic import printable
from spinseg.cli.options import (
    BUG,
    INTERRUPTED,
    WRONG_INPUT,
    ChannelAxis,
    IntensityRange,
    Json,
    Quiet,
    Seed,
    channel_axis_of,
    print_error,
)
from spinseg.segmentation.files import OPTIONAL_FILES
from spinseg.segmentation.presets.option import prior_from_text
from spinseg.segmentation.presets.preset import DEFAULT, Preset, chosen_preset

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from spinseg.segmentation.batch import Outcome

MAX_VERDICTS = 3  # images that each get a sentence on how far to trust them
MAX_NAMED = 10  # of those that failed, or came back as one region
PIPED_WIDTH = 10_000  # of a table that no terminal shows: paths are not broken

_PRESETS = "; ".join(f"{name}: {kind.about[0].lower()}{kind.about[1:-1]}" for name, kind in Preset.known.items()) + "."


def segment(
    images: Annotated[
        list[str],
        typer.Argument(help="PNG, JPEG, JPEG 2000, GIF, WebP, BMP, TIFF, NPY or Zarr; NIfTI with the extra [nifti]."),
    ],
    out: Annotated[Path, typer.Option(help="Folder for the results, one folder in it for each image.")] = Path(
        "spinseg-out"
    ),
    preset: Annotated[str, typer.Option(metavar="|".join(Preset.known), help=_PRESETS)] = DEFAULT,
    sweeps: Annotated[
        int | None, typer.Option(help="Sweeps of each chain; by default until more are of no use, 400 at most (photo).")
    ] = None,
    seconds: Annotated[float | None, typer.Option(help="About how long to sample, instead of --sweeps.")] = None,
    chains: Annotated[int | None, typer.Option(help="Number of chains.")] = None,
    seed: Seed = 0,
    mask: Annotated[str | None, typer.Option(help="Segment only where this image is not black.")] = None,
    seeds: Annotated[
        str | None,
        typer.Option(
            help="Label image: pixels of one number stay together, different numbers apart; 0 is free (photo)."
        ),
    ] = None,
    channel_axis: ChannelAxis = "auto",
    intensity_range: IntensityRange = None,
    start_label: Annotated[int, typer.Option(min=0, max=1, help="First label, 0 or 1; one less outside.")] = 1,
    min_size: Annotated[int | None, typer.Option(help="Fewest sites in a cluster.")] = None,
    max_size: Annotated[int | None, typer.Option(help="Most sites in a cluster.")] = None,
    geojson: Annotated[bool, typer.Option("--geojson", help="Write the regions as polygons, regions.geojson.")] = False,
    svg: Annotated[bool, typer.Option("--svg", help="Write the outlines as a drawing, outlines.svg.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Write the table of regions, regions.csv.")] = False,
    probabilities: Annotated[
        bool,
        typer.Option("--probabilities", help="Write the boundary probability as numbers, boundary_probability.tif."),
    ] = False,
    jobs: Annotated[int | None, typer.Option(help="Images at a time, one processor each; 1 by default.")] = None,
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
            help="Skip images that are complete, and repeat those that were interrupted. A result of another image, "
            "seed, option or version is an error; --overwrite replaces it.",
        ),
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace existing results.")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
    **options: Any,
) -> None:
    """Segment images, and write label images, overlays and reports.

    If an image cannot be read, a line says why, and the others are segmented.
    """
    options = {name: value for name, value in options.items() if value is not None}
    if "prior" in options:
        options["prior"] = prior_from_text(options["prior"])
    if "," in options.get("init", ""):
        options["init"] = tuple(options["init"].split(","))
    limits = {"min_size": min_size, "max_size": max_size}
    if limits != dict.fromkeys(limits):
        options["prior"] = chosen_preset(preset, options).prior.with_limits(**limits)
    keywords = {"preset": preset, "rng": seed, "start_label": start_label, **options}
    keywords["channel_axis"] = channel_axis_of(channel_axis)
    given: dict[str, Any] = {"sweeps": sweeps, "seconds": seconds, "chains": chains, "mask": mask, "seeds": seeds}
    given["intensity_range"] = intensity_range
    keywords |= {name: value for name, value in given.items() if value is not None}
    how: dict[str, Any] = {"jobs": jobs, "dask": dask, "resume": resume, "overwrite": overwrite}
    wanted = zip(OPTIONAL_FILES, (geojson, svg, csv, probabilities), strict=True)
    how["also"] = [name for name, is_wanted in wanted if is_wanted]
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


def print_outcomes(outcomes: list["Outcome"]) -> None:
    """Print a row for each image that was segmented, and how many were skipped."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD)
    table.add_column("image", overflow="fold")
    for name in ("clusters", "regions", "sites", "seconds"):
        table.add_column(name, justify="right")
    table.add_column("converged")
    table.add_column("results in", overflow="fold")
    for outcome in outcomes:
        if (found := outcome.summary) and not outcome.done_before:
            counts = (found["n_clusters"], found["n_regions"], found["n_sites"])
            name = printable(Path(outcome.source).name) + (" (interrupted)" if found["interrupted"] else "")
            converged = {True: "yes", False: "no", None: "-"}[found["converged"]]
            table.add_row(_text(name), *map(str, counts), f"{outcome.seconds:.1f}", converged, _text(outcome.folder))
    if table.row_count:
        print_table(table)
    found_now = [outcome.summary for outcome in outcomes if outcome.summary and not outcome.done_before]
    if len(found_now) > MAX_VERDICTS:
        n_converged = sum(found["converged"] is True for found in found_now)
        print(f"The chains have converged on {n_converged} of {len(found_now)} images; see the reports.")
        if warned := [printable(Path(found["source"]).name) for found in found_now if found["warning"]]:
            print(f"Single region despite visible contrast: {_some_of(warned)}. The reports say what to try.")
    else:
        for found in found_now:
            print((f"{printable(Path(found['source']).name)}: " if len(found_now) > 1 else "") + found["verdict"])
    if failed := [printable(outcome.source) for outcome in outcomes if outcome.error is not None]:
        print(f"Not segmented: {_some_of(failed)}")
    if n_before := sum(outcome.done_before for outcome in outcomes):
        print(f"{n_before} skipped (already complete)")


def _some_of(names: list[str]) -> str:
    """The first few names, or all, in a line."""
    return ", ".join(names[:MAX_NAMED]) + (", ..." if len(names) > MAX_NAMED else "")


def print_table(table: "Table") -> None:
    """Print a table, without breaking its lines where no terminal shows it."""
    from rich.console import Console

    console = Console()
    (console if console.is_terminal else Console(width=PIPED_WIDTH)).print(table)


def _text(name: str) -> "Text":
    """A name as it is: brackets in it are not markup."""
    from rich.text import Text

    return Text(name.encode(errors="replace").decode())
