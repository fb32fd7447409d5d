"""The command line: parse, call, print; no logic."""

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.text import Text

    from spinseg.batch import Outcome

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


@app.callback()
def spinseg() -> None:
    """Bayesian nonparametric image segmentation: no number of clusters is asked for, and the answer is a posterior."""


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
    sweeps: Annotated[int | None, typer.Option(help="Sweeps of each chain.")] = None,
    chains: Annotated[int | None, typer.Option(help="Number of chains.")] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same files.")] = 0,
    mask: Annotated[str | None, typer.Option(help="Picture that is not black where to segment.")] = None,
    jobs: Annotated[int, typer.Option(help="Pictures at a time, one processor each.")] = 1,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace results that are there already.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print errors only.")] = False,
) -> None:
    """Segment pictures, and write label images, overlays and reports.

    What is not given is the preset's. Pictures that cannot be read get a line, and the others are done.
    """
    from spinseg.presets import prior_named

    chosen = prior_named(
        prior and prior.value,
        preset.value,
        concentration=alpha,
        discount=discount,
        n_labels=labels,
        min_size=min_size,
        max_size=max_size,
    )
    given: dict[str, Any] = {"prior": chosen, "beta": beta, "lam": lam, "n_sites": sites, "mask": mask}
    given |= {"sites": site_kind and site_kind.value, "count_weight": count_weight, "sweeps": sweeps, "chains": chains}
    keywords = {name: value for name, value in given.items() if value is not None}
    keywords |= {"preset": preset.value, "rng": seed}
    _segment_all(images, out, keywords, jobs, overwrite, as_json, quiet)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("spinseg-demo"),
    seed: Annotated[int, typer.Option(help="The same seed gives the same files.")] = 0,
) -> None:
    """Segment a picture that comes along, and say where to look."""
    from spinseg.pictures import PICTURES

    picture = PICTURES["coffee"]
    print(f"Segmenting {picture.path.name}, {picture.credit}.", file=sys.stderr)
    _segment_all([str(picture.path)], out, {"rng": seed}, jobs=1, overwrite=True)
    print(f"Look at {(out / 'coffee' / 'report.html').resolve()}")


def _segment_all(
    images: list[str],
    out: Path,
    keywords: dict[str, Any],
    jobs: int,
    overwrite: bool,
    as_json: bool = False,
    quiet: bool = False,
) -> None:
    """Segment, print what became of each picture, and exit with the code that says it."""
    from spinseg.batch import segment_files

    outcomes, code = {}, 0
    try:
        found = segment_files(images, out, keywords, jobs=jobs, overwrite=overwrite, progress=not quiet)
        for index, outcome in found:
            outcomes[index] = outcome
            if outcome.error is not None:
                code = 2
                print(f"spinseg: {outcome.error}", file=sys.stderr)
    except KeyboardInterrupt:
        code = 130
        print("spinseg: interrupted; what is finished is saved", file=sys.stderr)
    ordered = [outcomes[index] for index in sorted(outcomes)]
    if as_json:
        print(json.dumps({"images": [_as_json(outcome) for outcome in ordered]}))
    elif not quiet:
        _print_table([outcome for outcome in ordered if outcome.summary])
    if code:
        raise SystemExit(code)


def _as_json(outcome: "Outcome") -> dict[str, Any]:
    """One picture, without its regions: they are in its result.json."""
    found = {name: value for name, value in (outcome.summary or {}).items() if name != "regions"}
    facts = {"folder": outcome.folder, "seconds": round(outcome.seconds, 3), "interrupted": outcome.interrupted}
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


def _text(name: str) -> "Text":
    """A name as it is: brackets in it are not markup."""
    from rich.text import Text

    return Text(name.encode(errors="replace").decode())


def main() -> None:
    """Run the command; wrong input is one line and exit code 2."""
    try:
        app()
    except (ValueError, OSError) as error:
        print(f"spinseg: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
