"""Keywords of `segment`, fields of `Settings` and options of `spinseg segment` have the same names."""

import inspect

import pytest
import typer
from spinseg.segmentation.prior_names import PRIORS, prior_named
from spinseg.segmentation.settings import KEYWORDS
from typer.main import get_command
from typer.testing import CliRunner

import spinseg as ss
from spinseg.cli.program import EXAMPLES, app
from spinseg.image.superpixels import KINDS
from spinseg.model.priors import PartitionPrior
from spinseg.sampler import plan
from spinseg.segmentation import settings
from spinseg.segmentation.presets import PRESETS

# Fields that only presets choose, keywords that are no settings, and options that are not of one segmentation.
ONLY_IN_PRESETS = {
    "power",
    "refined",
    "connected",
    "n_details",
    "pixels_per_site",
    "fewest_sites",
    "max_pixels",
    "likelihood",
    "smoothing",
}
NOT_SETTINGS = {"image", "mask", "seeds", "channel_axis", "intensity_range", "rng", "workers", "progress"}
OF_PRIOR = {"concentration", "discount", "n_labels", "min_size", "max_size"}
OF_COMMAND = {
    "images",
    "out",
    "csv",
    "geojson",
    "probabilities",
    "svg",
    "jobs",
    "dask",
    "resume",
    "overwrite",
    "as_json",
    "quiet",
}
ONLY_IN_PYTHON = {"image", "workers", "progress"}  # `images`, `--jobs` and `--quiet`

# The first name of an option is that of its keyword, unless another name was there first.
OTHER_NAMES = {"sites": "--site-kind", "as_json": "--json"}
ALIASES = {"n_sites": "--sites", "lam": "--lambda", "rng": "--seed", "concentration": "--alpha", "n_labels": "--labels"}


@pytest.fixture(scope="module")
def options():
    """The parameters of `spinseg segment`, by the names of the function's arguments."""
    command = typer.main.get_command(app).commands["segment"]
    return {parameter.name: parameter for parameter in command.params if parameter.name != "help"}


def test_keywords_are_the_fields_of_settings():
    keywords = set(inspect.signature(ss.segment).parameters)
    assert keywords - NOT_SETTINGS == set(KEYWORDS) == set(ss.Settings.__dataclass_fields__) - ONLY_IN_PRESETS


def test_options_are_the_keywords(options):
    keywords = set(inspect.signature(ss.segment).parameters)
    assert options.keys() == keywords - ONLY_IN_PYTHON | OF_PRIOR | OF_COMMAND


def test_options_are_named_as_the_keywords_and_keep_their_older_names(options):
    for name, option in options.items():
        if name != "images":
            primary = OTHER_NAMES.get(name, f"--{name.replace('_', '-')}")
            assert list(option.opts) == [primary, *([ALIASES[name]] if name in ALIASES else [])]


@pytest.mark.parametrize("name", KEYWORDS)
def test_help_and_choices_are_those_of_the_settings(options, name):
    about = ss.Settings.__dataclass_fields__[name].metadata
    assert options[name].help == about["help"] and options[name].metavar == ("|".join(about["choices"]) or None)


def test_parameters_of_priors_are_named_as_in_python():
    assert {name for prior in PRIORS.values() for name in prior.defaults} | {"min_size", "max_size"} == OF_PRIOR
    assert all(
        isinstance(prior_named(name, "photo", n_labels=3), PartitionPrior) for name in ("potts", "finite", "mfm")
    )


def test_choices_are_those_of_the_package():
    assert list(PRESETS) == list(settings.PRESET_NAMES) and list(PRIORS) == list(settings.PRIOR_NAMES)
    assert KINDS == settings.SITE_KINDS and tuple(plan.ATTEMPTS) == settings.MOVES


def test_the_version_is_told():
    told = CliRunner().invoke(app, ["--version"])
    assert told.exit_code == 0 and told.output == f"spinseg {ss.__version__}\n"


@pytest.mark.parametrize("name", list(EXAMPLES))
def test_the_help_of_every_command_has_examples_that_work(name):
    command = get_command(app).commands[name]
    options = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    told = CliRunner().invoke(app, [name, "--help"])
    assert told.exit_code == 0 and "<bool>" not in told.output
    for line in EXAMPLES[name]:
        assert f"    {line}\n" in told.output and line.startswith(f"spinseg {name}")
        assert {word for word in line.split() if word.startswith("--")} <= options


def test_the_list_of_commands_has_whole_sentences_and_exit_codes():
    told = CliRunner().invoke(app, ["--help"]).output
    assert "..." not in told.split("Commands:")[1] and "130 interrupted" in told
    assert all(name in told for name in EXAMPLES)
