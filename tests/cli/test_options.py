"""The options of `spinseg segment` are those of the presets and the keywords of `segment`; help loads nothing slow."""

import inspect
import re
import subprocess
import sys

import pytest
from typer.main import get_command
from typer.testing import CliRunner

import spinseg as ss
from command import spinseg
from spinseg.cli.program import GROUPS, app
from spinseg.segmentation.presets.preset import Preset

ONLY_IN_PYTHON = {"image", "workers", "progress", "options"}  # `images`, `--jobs` and `--quiet`
OF_COMMAND = {"images", "out", "csv", "geojson", "probabilities", "svg", "jobs", "dask", "resume", "overwrite"}
OF_COMMAND |= {"as_json", "quiet", "min_size", "max_size"}
OPTIONS = {name: kind.options() for name, kind in Preset.known.items()}
EVERY = {name: about for options in OPTIONS.values() for name, about in options.items()}
COMMANDS = get_command(app).commands


def flag(name):
    return "--json" if name == "as_json" else f"--{name.replace('_', '-')}"


def parameters(command):
    """The parameters of a command, by the names of the function's arguments."""
    found = COMMANDS[command].make_context(command, [], resilient_parsing=True).command
    return {parameter.name: parameter for parameter in found.params}


@pytest.mark.parametrize("preset", OPTIONS)
def test_the_command_has_every_option_of_a_preset_with_its_help_choices_and_defaults(preset):
    found = parameters("segment")
    for name, about in OPTIONS[preset].items():
        default = getattr(Preset.known[preset], name)
        users = [other for other in OPTIONS if name in OPTIONS[other]]
        assert found[name].help.startswith(f"{about.help}  [default: ")
        shown = re.sub(r"\d+\.\d{5,}", lambda long: f"{float(long[0]):.4g}", str(default))
        assert ("auto" if default is None else shown) in found[name].help
        assert (preset in found[name].rich_help_panel) == (len(users) < len(OPTIONS))
        assert set(about.choices) <= set((found[name].metavar or "").split("|")) and found[name].default is None
        assert list(found[name].opts) == [flag(name)]
        assert list(found[name].secondary_opts) == ([f"--no{flag(name)[1:]}"] if about.kind is bool else [])


def test_the_other_options_are_the_keywords_of_segment():
    found, keywords = parameters("segment"), set(inspect.signature(ss.segment).parameters) - ONLY_IN_PYTHON
    others = found.keys() - EVERY.keys()
    assert others == keywords - {"rng"} | {"seed"} | OF_COMMAND
    assert all(list(found[name].opts) == [flag(name)] for name in others - {"images"})


@pytest.mark.parametrize("preset", OPTIONS)
def test_an_option_of_another_preset_is_refused_with_those_that_it_has(preset, tmp_path):
    for name in EVERY.keys() - OPTIONS[preset].keys():
        value = [] if EVERY[name].kind is bool else [(*EVERY[name].choices, "1")[0]]
        run = spinseg("segment", "a.png", "--preset", preset, "--out", tmp_path / "out", flag(name), *value, check=2)
        has = ", ".join(OPTIONS[preset])
        assert run.stderr.startswith(f"spinseg: unknown option: {name}. The preset {preset} has {has}. {name} is an")


def test_the_version_is_told():
    reported = CliRunner().invoke(app, ["--version"])
    assert reported.exit_code == 0 and reported.output == f"spinseg {ss.__version__}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_every_command_has_examples_that_work(name):
    options = {option for parameter in parameters(name).values() for option in parameter.opts}
    reported = CliRunner().invoke(app, [name, "--help"])
    assert reported.exit_code == 0 and "<bool>" not in reported.output
    lines = reported.output.split("  Examples:\n")[1].splitlines()
    assert lines and all(line.startswith(f"    spinseg {name}") for line in lines)
    assert {word for line in lines for word in line.split() if word.startswith("--")} <= options


def test_the_help_of_segment_has_sections():
    reported = CliRunner().invoke(app, ["segment", "--help"]).output
    heads = [line[:-1] for line in reported.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert heads == [
        *("Arguments", "Common", "Output", "Many images", "Reading", "Sampling", "Model"),
        *("Model, auto, photo, measured, objects", "Model, classes, paper", "Model, classes", "Model, objects"),
    ]
    common = " ".join(reported.split("\nCommon:")[1].split("\nOutput:")[0].split())
    assert "--detail" in common and "[default: 0.65 (auto, photo), 0.5 (measured, objects)]" in common
    assert {name for names in GROUPS.values() for name in names} <= {param.name for param in segment_parameters()}


def segment_parameters():
    """The parameters of `spinseg segment`, once its options are loaded."""
    command = get_command(app).commands["segment"]
    return command.get_params(command.make_context("segment", ["image.png"]))


def test_the_list_of_commands_has_whole_sentences_and_loads_nothing_slow():
    command = [sys.executable, "-X", "importtime", "-m", "spinseg", "--help"]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    listed = run.stdout.split("Commands:")[1]
    assert listed.count(".\n") == len(COMMANDS) + 1 and "..." not in listed and "130 interrupted" in listed
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in run.stderr.splitlines()}
    assert "typer" in loaded and not loaded & {"numba", "scipy", "PIL", "rich", "starlette"}
