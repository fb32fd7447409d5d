"""The command line: parse, call, print; no logic."""

import sys
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@app.callback()
def spinseg() -> None:
    """Bayesian nonparametric image segmentation: no number of clusters is asked for, and the answer is a posterior."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the pictures.")] = Path("spinseg-demo"),
    seed: Annotated[int, typer.Option(help="Seed of the chains.")] = 0,
) -> None:
    """Segment a picture that comes along, and say where to look."""
    from skimage.data import coffee

    from spinseg.segment import segment

    print("Segmenting coffee.png (Pikolo Espresso Bar, CC0).", file=sys.stderr)
    print("The first run on a machine compiles the sampler: please wait a little.", file=sys.stderr)
    segmentation = segment(coffee(), rng=seed, progress=True)
    segmentation.save(out)
    print(f"{segmentation.n_clusters} clusters on {segmentation.model.graph.n_sites} sites.")
    print(f"Look at {out / 'overlay.png'} and {out / 'boundary_probability.png'}.")


def main() -> None:
    """Run the command; wrong input is one line and exit code 2."""
    try:
        app()
    except (ValueError, OSError) as error:
        print(f"spinseg: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
