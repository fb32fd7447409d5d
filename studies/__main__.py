"""Run a study: `python -m studies NAME`."""

import json
import os
from collections.abc import Callable
from importlib import import_module
from typing import Annotated

import typer
from threadpoolctl import threadpool_limits

from spinseg._run import THREAD_VARIABLES
from spinseg.cli.commands import Json
from spinseg.cli.program import Debug, run
from studies.commands import evaluate, reproduce

SPEED = (
    "engine",
    "segment",
    "draws",
    "folder",
    "measured",
    "scaling",
    "large",
    "rasters",
    "seams",
    "app",
    "kills",
)
QUESTIONS = {
    "evidence": "How good the evidence of boundaries is alone.",
    "boundaries": "Fit the weights of the cues of boundaries, and compare cues.",
    "measured_boundaries": "Fit the weights of the cues for measured images.",
    "volume_boundaries": "Fit the weights of the cues for volumes.",
    "regions": "One preset for every image, with nine cues and no likelihood of appearance.",
    "baselines": "Tune other methods on training photographs.",
    "object_baselines": "Tune recipes for objects on training nuclei.",
    "standard_errors": "Claimed standard errors of boundaries beside actual ones.",
    "mixing": "How fast chains of the paper's model mix.",
    "outlines": "How close refined outlines are to the edges of an image.",
    "volumes": "Tissues of a brain, found and compared with probability maps.",
    "classes": "Kinds of material in rendered and real images, from clean to hopeless.",
    "ddcrp": "How fast the distance-dependent Chinese restaurant process runs.",
}

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None, help=__doc__)
app.command("evaluate")(evaluate)
app.command("reproduce")(reproduce)


@app.callback()
def studies(debug: Debug = False) -> None:
    """Run a study."""


@app.command("speed")
def speed(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="|".join(SPEED), help="By default engine segment.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure what spinseg costs: a sweep, an image, a large image, the web app."""
    for name in names or ["engine", "segment"]:
        if name not in SPEED:
            raise typer.BadParameter(f"{name}: there are {', '.join(SPEED)}")
        _print_figures(f"speed.{name}", as_json)


@app.command("fields")
def fields(
    only: Annotated[str, typer.Option(metavar="TEXT", help="Run the rows whose names contain this.")] = "",
    as_json: Json = False,
) -> None:
    """Segment images of other fields than photography, beside the recipe people use there."""
    try:
        _print_figures("questions.fields", as_json, only=only)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--only") from error


def _command(name: str) -> Callable[..., None]:
    """The command that answers a question."""

    def ask(as_json: Json = False) -> None:
        _print_figures(f"questions.{name}", as_json)

    return ask


for name, about in QUESTIONS.items():
    app.command(name, help=about)(_command(name))


def _print_figures(study: str, as_json: bool, **options: str) -> None:
    """Run a study with one thread for every method, and print its figures."""
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))  # for processes that it starts
    with threadpool_limits(1):  # NumPy is loaded here already
        figures = import_module(f"studies.{study}").study(**options)
    if as_json:
        print(json.dumps(figures, indent=2))
    else:
        for name, value in figures.items():
            print(f"{name:42s} {value:.4g}" if isinstance(value, float) else f"{name:42s} {value}")


if __name__ == "__main__":
    run(app)
