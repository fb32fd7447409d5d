"""The command line: parse, call, print; no logic."""

import json
import logging
import signal
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spinseg._errors import LOG, MissingExtra, expected, line_of

if TYPE_CHECKING:
    from rich.text import Text

    from spinseg.evaluation.summary import Summary
    from spinseg.segmentation.batch import Outcome

WRONG, INTERRUPTED, BUG = 2, 130, 70  # exit codes; the last is EX_SOFTWARE of sysexits.h
SHOW = "spinseg --debug ... shows its traceback"

DEFAULT_METHODS = "spinseg,potts-dp,rdd-crp,felzenszwalb,quickshift"  # those that need no extra

# Of a summary, what fits into 80 columns.
IN_TERMINAL = (
    "median_rand",
    "p_value",
    "median_clusters",
    "rand",
    "variation_of_information",
    "covering",
    "median_seconds",
)

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


class Preset(StrEnum):
    """Names of the presets."""

    photo = "photo"
    paper = "paper"


class Prior(StrEnum):
    """Short names of the priors."""

    dp = "dp"
    py = "py"
    potts = "potts"
    finite = "finite"
    mfm = "mfm"


class Sites(StrEnum):
    """Kinds of sites."""

    slic = "slic"
    watershed = "watershed"
    felzenszwalb = "felzenszwalb"
    grid = "grid"
    pixels = "pixels"


class Estimate(StrEnum):
    """Partitions that labels come from."""

    best = "best"
    vi = "vi"


class Part(StrEnum):
    """What the paper shows."""

    figure1 = "figure1"
    figure2 = "figure2"
    figure3 = "figure3"
    figure4 = "figure4"
    figure5 = "figure5"
    table1 = "table1"


@app.callback()
def spinseg(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of a bug, for a report of it.")] = False,
) -> None:
    """Bayesian nonparametric image segmentation: no number of clusters is asked for, and the answer is a posterior."""
    if debug:
        LOG.setLevel(logging.DEBUG)
        LOG.addHandler(logging.StreamHandler())


@app.command()
def segment(
    images: Annotated[list[str], typer.Argument(help="Pictures: PNG, JPEG, GIF, WebP, BMP, TIFF or NPY.")],
    out: Annotated[Path, typer.Option(help="Folder for the results, with one in it for each picture.")] = Path(
        "spinseg-out"
    ),
    preset: Annotated[Preset, typer.Option(help="Settings to start from.")] = Preset.photo,
    prior: Annotated[
        Prior | None,
        typer.Option(help="Dirichlet process, Pitman-Yor, Potts, finite Dirichlet, mixture of finite mixtures."),
    ] = None,
    alpha: Annotated[float | None, typer.Option(help="Concentration of the prior.")] = None,
    discount: Annotated[float | None, typer.Option(help="Discount of Pitman-Yor.")] = None,
    labels: Annotated[
        int | None,
        typer.Option(
            help="Most clusters (potts, finite), or their mean (mfm). The photo preset cuts clusters into regions, so "
            "that there may be more labels."
        ),
    ] = None,
    min_size: Annotated[int | None, typer.Option(help="Fewest sites in a cluster.")] = None,
    max_size: Annotated[int | None, typer.Option(help="Most sites in a cluster.")] = None,
    beta: Annotated[float | None, typer.Option(help="One coupling for all touching sites.")] = None,
    lam: Annotated[float | None, typer.Option("--lambda", help="Bond strength of the sampler.")] = None,
    sites: Annotated[int | None, typer.Option(help="About how many sites.")] = None,
    site_kind: Annotated[Sites | None, typer.Option(help="How sites are made.")] = None,
    count_weight: Annotated[float | None, typer.Option(help="How many observations a pixel counts for.")] = None,
    detail: Annotated[float | None, typer.Option(help="From 0, coarse, to 1, fine (photo). [default: 0.5]")] = None,
    estimate: Annotated[
        Estimate | None, typer.Option(help="Best partition visited, or least expected variation of information.")
    ] = None,
    sweeps: Annotated[int | None, typer.Option(help="Sweeps of each chain.")] = None,
    chains: Annotated[int | None, typer.Option(help="Number of chains.")] = None,
    init: Annotated[
        str | None,
        typer.Option(help="Where chains start: one, singletons or greedy, or one of these for each, with commas."),
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same files.")] = 0,
    mask: Annotated[str | None, typer.Option(help="Picture that is not black where to segment.")] = None,
    jobs: Annotated[int | None, typer.Option(help="Pictures at a time, one processor each. [default: 1]")] = None,
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
            "picture, seed, settings or version are kept and told; with --overwrite they are replaced.",
        ),
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace results that are there already.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print errors only.")] = False,
) -> None:
    """Segment pictures, and write label images, overlays and reports.

    What is not given is the preset's. Pictures that cannot be read get a line, and the others are done.
    """
    from spinseg.segmentation.settings import prior_named

    chosen = prior_named(
        prior and prior.value,
        preset.value,
        sites=site_kind and site_kind.value,
        concentration=alpha,
        discount=discount,
        n_labels=labels,
        min_size=min_size,
        max_size=max_size,
    )
    given: dict[str, Any] = {"prior": chosen, "beta": beta, "lam": lam, "n_sites": sites, "mask": mask}
    given |= {"sites": site_kind and site_kind.value, "count_weight": count_weight, "sweeps": sweeps, "chains": chains}
    given |= {"detail": detail, "estimate": estimate and estimate.value}
    given["init"] = tuple(init.split(",")) if init and "," in init else init
    keywords = {name: value for name, value in given.items() if value is not None}
    keywords |= {"preset": preset.value, "rng": seed}
    how = {"jobs": jobs, "dask": dask, "resume": resume, "overwrite": overwrite}
    _segment_all(images, out, keywords, how, as_json, quiet)


@app.command()
def large(
    image: Annotated[Path, typer.Argument(help="One picture: a folder of Zarr or OME-Zarr, or a (tiled) TIFF file.")],
    out: Annotated[Path, typer.Option(help="Folder for the results, and for what a run goes on from.")] = Path(
        "spinseg-large"
    ),
    sites: Annotated[
        int | None, typer.Option(help="About how many sites. [default: one for 190 pixels, up to 200000]")
    ] = None,
    detail: Annotated[float, typer.Option(help="From 0, coarse, to 1, fine.")] = 0.5,
    sweeps: Annotated[int, typer.Option(help="Sweeps of each chain.")] = 200,
    chains: Annotated[int, typer.Option(help="Number of chains.")] = 1,
    tile: Annotated[int, typer.Option(help="Pixels along each side of a tile.")] = 2048,
    seed: Annotated[int, typer.Option(help="The same seed gives the same labels.")] = 0,
    jobs: Annotated[int | None, typer.Option(help="Tiles at a time, one processor each. [default: all]")] = None,
    dask: Annotated[str | None, typer.Option(help="Address of a Dask scheduler, to work on its cluster.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print errors only.")] = False,
) -> None:
    """Segment one picture that may be larger than memory.

    The same command after an interruption goes on where it stopped; no tile that was finished is done again.
    """
    from spinseg.segmentation.large.segment_large import segment_large

    found = segment_large(
        image,
        out,
        n_sites=sites,
        detail=detail,
        sweeps=sweeps,
        chains=chains,
        tile=tile,
        rng=seed,
        jobs=jobs,
        dask=dask,
        progress=not quiet,
    )
    if as_json:
        print((out / "result.json").read_text(encoding="utf-8"))
    elif not quiet:
        print(f"{found.n_regions} regions of {found.model.graph.n_sites} sites")
        print(f"Look at {(out / 'overview.png').resolve()}; the labels are in {(out / 'labels.zarr').resolve()}")


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("spinseg-demo"),
    seed: Annotated[int, typer.Option(help="The same seed gives the same files.")] = 0,
) -> None:
    """Segment a picture that comes along, and say where to look."""
    from spinseg.pictures import PICTURES

    picture = PICTURES["coffee"]
    print(f"Segmenting {picture.path.name}, {picture.credit}.", file=sys.stderr)
    _segment_all([str(picture.path)], out, {"rng": seed}, {"overwrite": True})
    print(f"Look at {(out / 'coffee' / 'report.html').resolve()}")


@app.command()
def evaluate(
    dataset: Annotated[str, typer.Argument(help="bsds300, bsds500, labelme8, or folder: images/ and labels/.")],
    root: Annotated[Path, typer.Option(help="Folder that has the dataset.")],
    split: Annotated[str | None, typer.Option(help="train, val or test, which is the default (BSDS).")] = None,
    methods: Annotated[str, typer.Option(help="Names with commas between them; `list` lists them.")] = DEFAULT_METHODS,
    limit: Annotated[int | None, typer.Option(help="At most so many images, evenly spaced by name.")] = None,
    jobs: Annotated[int | None, typer.Option(help="Images at a time, one processor each. [default: all]")] = None,
    dask: Annotated[str | None, typer.Option(help="Address of a Dask scheduler, to work on its cluster.")] = None,
    out: Annotated[Path, typer.Option(help="Results, a row each; gone on with where it is there.")] = Path(
        "results.csv"
    ),
    seed: Annotated[int, typer.Option(help="The same seed gives the same rows, but for the seconds.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print errors only.")] = False,
) -> None:
    """Compare methods on photographs with ground truth.

    Rows are written as they come: the same command after an interruption goes on where it stopped. Beside the rows
    come a summary (CSV), a page with the best and the worst images, and all label images.
    """
    from spinseg.evaluation.comparison import compare_methods, known_methods

    if methods == "list":
        print("\n".join(f"{name:22s} {about}" for name, about in known_methods().items()))
        return
    found = compare_methods(
        dataset,
        root,
        out,
        split=split,
        methods=methods.split(","),
        limit=limit,
        jobs=jobs,
        dask=dask,
        seed=seed,
        progress=not quiet,
    )
    if as_json:
        print(json.dumps(found.as_json()))
    elif not quiet and found.summaries:
        _print_summaries(found.summaries)
        print(f"Look at {found.page.resolve()}")
    if found.n_errors:
        print(f"spinseg: {found.n_errors} of {found.n_rows} rows tell of an error: {out}", file=sys.stderr)
        if found.n_bugs:
            _tell(f"spinseg: {found.n_bugs} of them tell of a bug in spinseg, please report it ({SHOW})")
        raise SystemExit(BUG if found.n_bugs else WRONG)


@app.command()
def reproduce(
    what: Annotated[Part, typer.Argument(help="A figure of the paper, or its table.")],
    root: Annotated[Path | None, typer.Option(help="Folder that has the datasets (figure4, figure5, table1).")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the picture and the numbers.")] = Path("spinseg-paper"),
    quick: Annotated[bool, typer.Option("--quick", help="A few images or draws: minutes at most.")] = False,
    jobs: Annotated[int | None, typer.Option(help="Images at a time, one processor each. [default: all]")] = None,
) -> None:
    """Make a figure of the paper, or its table, anew: a PNG to look at and a CSV with its numbers.

    Long ones keep what is finished: the same command after an interruption goes on where it stopped.
    """
    from spinseg.evaluation.paper import reproduce as made

    for path in made(what.value, out, root, quick=quick, jobs=jobs, progress=_tell):
        print(path.resolve())


@app.command("app")
def page(
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Port to listen at. [default: any free one]")
    ] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the address only.")] = False,
) -> None:
    """Open a page in the browser: drop a picture, move sliders, and watch the chains think."""
    try:
        from spinseg.app.server import serve
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("starlette", "uvicorn", "anyio"):
            raise
        raise MissingExtra('the page needs Starlette and uvicorn: pip install "spinseg[web]"') from None
    serve(port, open_browser=not no_browser)


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _segment_all(
    images: list[str],
    out: Path,
    keywords: dict[str, Any],
    how: dict[str, Any],
    as_json: bool = False,
    quiet: bool = False,
) -> None:
    """Segment, print what became of each picture, and exit with the code that says it."""
    from spinseg.segmentation.batch import segment_files

    outcomes, code = {}, 0
    try:
        for index, outcome in segment_files(images, out, keywords, **how, progress=not quiet):
            outcomes[index] = outcome
            if outcome.error is not None:
                code = BUG if outcome.traceback else max(code, WRONG)
                print(f"spinseg: {outcome.error}{f' ({SHOW})' if outcome.traceback else ''}", file=sys.stderr)
                if outcome.traceback:
                    LOG.debug("%s", outcome.traceback)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # what is left is to tell of it and to end
        code = INTERRUPTED
        print("spinseg: interrupted; what is finished is saved", file=sys.stderr)
    ordered = [outcomes[index] for index in sorted(outcomes)]
    if as_json:
        print(json.dumps({"images": [_as_json(outcome) for outcome in ordered]}))
    elif not quiet:
        _print_table([outcome for outcome in ordered if outcome.summary and not outcome.done_before])
        if n_before := sum(outcome.done_before for outcome in ordered):
            print(f"{n_before} {'was' if n_before == 1 else 'were'} done before")
    if code:
        raise SystemExit(code)


def _as_json(outcome: "Outcome") -> dict[str, Any]:
    """One picture, without its regions: they are in its result.json."""
    found = {name: value for name, value in (outcome.summary or {}).items() if name != "regions"}
    facts = {"folder": outcome.folder, "seconds": round(outcome.seconds, 3), "interrupted": outcome.interrupted}
    facts |= {"done_before": outcome.done_before}
    return {"source": outcome.source, "error": outcome.error, **facts, **found}


def _print_table(outcomes: list["Outcome"]) -> None:
    """One row for each picture that was segmented."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    if not outcomes:
        return
    table = Table(box=SIMPLE_HEAD)
    table.add_column("picture", overflow="fold")
    for name in ("clusters", "regions", "sites", "seconds"):
        table.add_column(name, justify="right")
    table.add_column("results in", overflow="fold")
    for outcome in outcomes:
        found = outcome.summary or {}
        counts = (found["n_clusters"], found["n_regions"], found["n_sites"])
        name = Path(outcome.source).name + (" (interrupted)" if found["interrupted"] else "")
        table.add_row(_text(name), *map(str, counts), f"{outcome.seconds:.1f}", _text(outcome.folder))
    Console().print(table)


def _print_summaries(summaries: list["Summary"]) -> None:
    """One row for each method."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    from spinseg.evaluation.summary import READ, written

    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("method", no_wrap=True)
    cells = [dict(zip(READ, written(summary), strict=True)) for summary in summaries]
    for name in IN_TERMINAL:
        words = [*READ[name][0].split(), *(row[name] for row in cells)]
        table.add_column(READ[name][0], justify="right", min_width=max(map(len, words)))
    for summary, row in zip(summaries, cells, strict=True):
        table.add_row(summary.method, *(row[name] for name in IN_TERMINAL))
    Console().print(table)


def _text(name: str) -> "Text":
    """A name as it is: brackets in it are not markup."""
    from rich.text import Text

    return Text(name.encode(errors="replace").decode())


def main() -> None:
    """Run the command: wrong input is one line and exit code 2, a bug one that asks to report it and 70."""
    try:
        sys.argv[1:] = _debug_first(sys.argv[1:])
        app()
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        raise SystemExit(INTERRUPTED) from None
    except Exception as error:
        LOG.debug("", exc_info=True)
        bug = not expected(error)
        print(f"spinseg: {line_of(error)}{f' ({SHOW})' if bug else ''}", file=sys.stderr)
        raise SystemExit(BUG if bug else WRONG) from None


def _debug_first(arguments: list[str]) -> list[str]:
    """The arguments with --debug in front, where it belongs to the program; people write it at the end."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    others = [word for word in arguments[:end] if word != "--debug"]
    return ["--debug"] * (len(others) < end) + others + arguments[end:]
