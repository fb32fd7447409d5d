"""`spinseg segment`: images into folders with label images, overlays and reports."""

import inspect
import json
import re
import signal
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

import spinseg.segmentation.presets  # noqa: F401 (makes them known)
from spinseg._errors import LOG
from spinseg._run.atomic import printable
from spinseg.cli.commands import (
    BUG,
    INTERRUPTED,
    WRONG_INPUT,
    ChannelAxis,
    ChannelKind,
    Dask,
    IntensityRange,
    Jobs,
    Json,
    OneEach,
    Outlines,
    Quiet,
    Seed,
    print_doubt,
    print_error,
    with_flags,
)
from spinseg.segmentation.batch import Outcome, listed, segment_files
from spinseg.segmentation.files import OPTIONAL_FILES
from spinseg.segmentation.presets.option import prior_from_text
from spinseg.segmentation.presets.preset import DEFAULT, Preset, chosen_preset
from spinseg.segmentation.report.page import INDEX, write_index
from spinseg.segmentation.verdict import headline, kind_note

MAX_VERDICTS = 3  # images that each get a sentence on how far to trust them
MAX_NAMED = 10  # of those that failed, or came back as one region
PIPED_WIDTH = 10_000  # of a table that no terminal shows: paths are not broken
OUT = Path("spinseg-out")
PRESETS = "; ".join(f"{name}: {kind.about[0].lower()}{kind.about[1:-1]}" for name, kind in Preset.known.items()) + "."


def segment(
    images: Annotated[
        list[str],
        typer.Argument(
            help="Files, or folders of them: PNG, JPEG, JPEG 2000, GIF, WebP, BMP, TIFF, NPY or Zarr; "
            "NIfTI with the extra [nifti]."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for the results, with one folder per image.")] = OUT,
    preset: Annotated[str, typer.Option(metavar="|".join(Preset.known), help=PRESETS)] = DEFAULT,
    sweeps: Annotated[
        int | None,
        typer.Option(help="Sweeps per chain; by default, photo runs until the chains converge, at most 400."),
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(help="About how long each image may take, instead of --sweeps.")
    ] = None,
    chains: Annotated[int | None, typer.Option(help="Chains for each level of detail: 2, or 1 for paper.")] = None,
    seed: Seed = 0,
    mask: Annotated[str | None, typer.Option(help="Segment only where this image is not black.")] = None,
    seeds: Annotated[
        str | None,
        typer.Option(help="Label image (photo): equal labels stay together, different ones apart; 0 is free."),
    ] = None,
    channel_axis: ChannelAxis = "auto",
    channel_kind: ChannelKind = "auto",
    intensity_range: IntensityRange = None,
    outlines: Outlines = None,
    one_each: OneEach = None,
    start_label: Annotated[int, typer.Option(min=0, max=1, help="First label; pixels outside get one less.")] = 1,
    min_size: Annotated[int | None, typer.Option(help="Smallest cluster, in superpixels.")] = None,
    max_size: Annotated[int | None, typer.Option(help="Largest cluster, in superpixels.")] = None,
    geojson: Annotated[bool, typer.Option("--geojson", help="Write regions.geojson, the regions as polygons.")] = False,
    svg: Annotated[bool, typer.Option("--svg", help="Write outlines.svg, the outlines as a drawing.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Write regions.csv, the table of regions.")] = False,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="Write boundary_probability.tif, the numbers of the map.")
    ] = False,
    jobs: Jobs = None,
    dask: Dask = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Skip complete results and redo interrupted ones; refuse those of another run."),
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace existing results.")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
    **options: Any,
) -> None:
    """Segment images with these options, and print what became of each."""
    options = {name: value for name, value in options.items() if value is not None}
    if "prior" in options:
        options["prior"] = prior_from_text(options["prior"])
    if "," in options.get("init", ""):
        options["init"] = tuple(options["init"].split(","))
    if min_size is not None or max_size is not None:
        options["prior"] = chosen_preset(preset, options).prior.with_limits(min_size=min_size, max_size=max_size)
    given: dict[str, Any] = {"sweeps": sweeps, "seconds": seconds, "chains": chains, "mask": mask, "seeds": seeds}
    given |= {"outlines": outlines, "one_each": one_each}
    given |= {"intensity_range": intensity_range, "preset": preset, "rng": seed, "start_label": start_label}
    keywords = options | {name: value for name, value in given.items() if value is not None}
    keywords |= {"channel_axis": channel_axis, "channel_kind": channel_kind}
    wanted = (geojson, svg, csv, probabilities)
    also = [name for name, is_wanted in zip(OPTIONAL_FILES, wanted, strict=True) if is_wanted]
    how = {"jobs": jobs, "dask": dask, "resume": resume, "overwrite": overwrite, "also": also}
    segment_and_print(images, out, keywords, as_json, quiet, **how)


def with_preset_options(command: Callable[..., None]) -> Callable[..., None]:
    """A command that takes ``**options``, with an option for each option of a preset in their place."""

    @wraps(command)
    def complete(**given: Any) -> None:
        command(**given)

    *parameters, _ = inspect.signature(command).parameters.values()
    for name in dict.fromkeys(name for kind in Preset.known.values() for name in kind.options()):
        annotation = _preset_option(name, [kind for kind in Preset.known.values() if name in kind.options()])
        keyword = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        parameters.append(keyword)
    complete.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    complete.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return complete


def _preset_option(name: str, kinds: list[type[Preset]]) -> Any:
    """The type of an option that these presets have, with its help and their defaults."""
    presets, abouts = [kind.name for kind in kinds], [kind.options()[name] for kind in kinds]
    choices = dict.fromkeys(choice for about in abouts for choice in about.choices)
    users: dict[str, list[str]] = {}
    for kind in kinds:
        value = getattr(kind, name)
        words = re.sub(
            r"\d+\.\d{5,}", lambda number: f"{float(number[0]):.4g}", "auto" if value is None else str(value)
        )
        users.setdefault(words, []).append(kind.name)
    defaults = [f"{value} ({', '.join(some)})" if len(users) > 1 else value for value, some in users.items()]
    flag = f"--{name.replace('_', '-')}"
    option = typer.Option(
        f"{flag}/--no-{flag[2:]}" if abouts[0].kind is bool else flag,
        help=f"{abouts[0].help}  [default: {', '.join(defaults)}]",
        metavar="|".join(choices) or None,
        rich_help_panel=f"Model, {', '.join(presets)}" if len(kinds) < len(Preset.known) else "Model",
    )
    return Annotated[abouts[0].kind | None, option]


def segment_and_print(
    images: list[str], out: Path, keywords: dict[str, Any], as_json: bool = False, quiet: bool = False, **how: Any
) -> None:
    """Segment images, print what became of each, and exit with the code of the worst."""
    outcomes, code = dict[int, Outcome](), 0
    images = listed(images)
    try:
        for index, outcome in segment_files(images, out, keywords, **how, progress=not quiet):
            outcomes[index] = outcome
            if (found := outcome.summary) and not outcome.done_before and not quiet:
                print_doubt(outcome.source, found["read_as"], found["read_otherwise"])
            if outcome.error is not None:
                code = BUG if outcome.traceback else max(code, WRONG_INPUT)
                if not outcome.is_kept:  # those are named at the end
                    print_error(outcome.error, outcome.name, bug=bool(outcome.traceback))
                if outcome.traceback:
                    LOG.debug("%s", outcome.traceback)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # another Ctrl-C must not keep the outcomes from being printed
        code = INTERRUPTED
        n_done = sum(not outcome.summary["interrupted"] for outcome in outcomes.values() if outcome.summary)
        left = f"{len(images) - n_done} of {len(images)} images are left"
        print_error(f"interrupted; {left}. To continue, run the same command with --resume.")
    ordered = [outcomes[index] for index in sorted(outcomes)]
    kept = [outcome for outcome in ordered if outcome.is_kept]
    if len(kept) == 1:
        print_error(kept[0].error or "")
    elif kept:
        print_error(
            f"{len(kept)} results are kept: use --resume to add what is missing, or --overwrite to replace them"
        )
    if as_json:
        print(json.dumps({"images": [_as_json(outcome) for outcome in ordered]}))
    elif not quiet:
        print_outcomes(ordered)
    page = _page(out, ordered)
    if page is not None and not (as_json or quiet):
        print(f"Open {printable(page.resolve())}")
    if code:
        raise SystemExit(code)


def _page(out: Path, outcomes: list[Outcome]) -> Path | None:
    """The page to look at: the report of one image, or that of several, which is written; None without results."""
    done = [outcome for outcome in outcomes if outcome.summary]
    if len(outcomes) < 2:
        return Path(done[0].folder) / "report.html" if done else None
    page = write_index(out, outcomes) if done else None
    if done and page is None:
        print_error(f"{printable(out / INDEX)} was left as it is: spinseg did not write it")
    return page


def _as_json(outcome: Outcome) -> dict[str, Any]:
    """One image without its regions and boundaries, which its result.json has."""
    found = {name: value for name, value in (outcome.summary or {}).items() if name not in ("regions", "boundaries")}
    facts = {name: getattr(outcome, name) for name in ("source", "error", "folder", "interrupted", "done_before")}
    return {**facts, "seconds": round(outcome.seconds, 3), **found}


def print_outcomes(outcomes: list[Outcome]) -> None:
    """Print a row for each image that was segmented, how far to trust it, and how many were skipped."""
    done = [(printable(Path(o.source).name), o, o.summary) for o in outcomes if o.summary and not o.done_before]
    counts = {"regions": "n_regions", "superpixels": "n_sites"}
    if any(not found["settings"]["connected"] for _, _, found in done):
        counts = {"clusters": "n_clusters"} | counts
    table = Table(box=SIMPLE_HEAD)
    table.add_column("image", overflow="fold")
    for column in (*counts, "seconds"):
        table.add_column(column, justify="right")
    table.add_column("converged")
    for name, outcome, found in done:
        image = Text(name + (" (interrupted)" if found["interrupted"] else ""))  # brackets in it are not markup
        numbers = (str(found[count]) for count in counts.values())
        converged = {True: "yes", False: "no", None: "-"}[found["converged"]]
        table.add_row(image, *numbers, f"{outcome.seconds:.1f}", converged)
    lines: list[Table | str] = [table] if done else []
    if len(done) > MAX_VERDICTS:
        finished = [(name, found) for name, _, found in done if not found["interrupted"]]
        n_converged = sum(found["converged"] is True for _, found in finished)
        lines.append(f"The chains have converged on {n_converged} of {len(finished)} images; see the reports.")
        if warned := [name for name, found in finished if found["warning"]]:
            lines.append(f"Parts that differ share a region: {_some_of(warned)}. The reports say what to try.")
    else:
        for name, _, found in done:
            if found["interrupted"]:
                continue
            is_well, words = headline(found)
            more = with_flags(found["warning"] or "") or ("" if is_well else "The report says what to do.")
            sentences = " ".join(part for part in (words, more, with_flags(kind_note(found))) if part)
            lines.append((f"{name}: " if len(done) > 1 else "") + sentences)
    n_failed = sum(bool(outcome.error) and not outcome.is_kept for outcome in outcomes)
    if n_failed and len(outcomes) > 1:
        lines.append(f"{n_failed} of {len(outcomes)} images failed; the errors above say why.")
    if kept := [printable(outcome.source) for outcome in outcomes if outcome.is_kept]:
        lines.append(f"Left as it was segmented before: {_some_of(kept)}")
    if n_before := sum(outcome.done_before for outcome in outcomes):
        lines.append(f"{n_before} skipped (already complete)")
    print_lines(*lines)


def print_lines(*lines: Table | str) -> None:
    """Print tables, and text that is broken between words; unbroken where no terminal shows it."""
    console = Console()
    console = console if console.is_terminal else Console(width=PIPED_WIDTH)
    for line in lines:
        console.print(line, markup=False, highlight=False)


def _some_of(names: list[str]) -> str:
    """The first few names, or all, in a line."""
    return ", ".join(names[:MAX_NAMED]) + (", ..." if len(names) > MAX_NAMED else "")
