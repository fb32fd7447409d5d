"""Files and commands that the documentation names exist, and its recipe for a likelihood works."""

import re
import shutil
import subprocess
import textwrap
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import typer

import spinseg.model.likelihoods as likelihoods
from kernel_source import names_of, replaced, source_of, text_of
from spinseg.cli.program import app as program

ROOT = Path(__file__).parents[1]
FOLDERS = ("src", "studies", "tests", "docs", "scripts", "examples", "conda", ".github")
MADE = ("_build", "auto_gallery", "generated", "__pycache__")  # by `make docs`, and by Python
FILES = [
    path.relative_to(ROOT)
    for path in chain(ROOT.iterdir(), *((ROOT / folder).rglob("*") for folder in FOLDERS))
    if not set(path.parts) & set(MADE)
]
PLACES = {f"/{path}" for path in FILES}
PAGES = [ROOT / path for path in FILES if path.suffix == ".md" and path.name != "CHANGELOG.md"]
FENCE = re.compile(r"^ *```(\w*)[^\n]*\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`]+)`(?:\)? at commit ([0-9a-f]{7,}))?")
NAME = re.compile(r"[\w./-]+(?:\.(?:py|pyi|md|toml|yaml|yml|cff|js|npz)|/)")
OF_READERS = {"collection.py", "photos/"}  # files that readers have or write


def spans(page):
    """The code within the text of a page, and the commit that follows it or an empty string."""
    return SPAN.findall(" ".join(FENCE.sub("", page.read_text(encoding="utf-8")).split()))


def commands(page):
    """The commands that a page names, in its text and in blocks for a shell, without comments."""
    blocks = [code for language, code in FENCE.findall(page.read_text(encoding="utf-8")) if language == "sh"]
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    return [line.split("#")[0].strip() for line in [*lines, *(span for span, _ in spans(page))]]


def has_been(name, commit):
    """Whether Git has a file at a commit, where it knows that commit."""
    git = shutil.which("git")
    if git is None or subprocess.run([git, "cat-file", "-e", commit], cwd=ROOT, capture_output=True).returncode:
        return True
    return not subprocess.run([git, "cat-file", "-e", f"{commit}:{name}"], cwd=ROOT, capture_output=True).returncode


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_a_page_names_exist(page):
    named = [(name, commit) for name, commit in spans(page) if NAME.fullmatch(name) and name not in OF_READERS]
    gone = [name for name, commit in named if commit and not has_been(name, commit)]
    places = [f"/{name.strip('/')}" for name, commit in named if not commit]
    gone += [place for place in places if not any(each.endswith(place) for each in PLACES)]
    assert gone == []


def wrong(command):
    """Why a command of this project cannot be what a page says; None where it can, and for other commands."""
    program_name, *words = command.split()
    if program_name == "make":
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        return next(
            (f"no target {word}" for word in words if re.fullmatch("[a-z-]+", word) and word not in targets), None
        )
    if program_name == "python" and words[:1] == ["-m"]:
        return wrong_module(*words[1:])
    if program_name == "python" and words[:1] == ["scripts/make_pictures.py"]:
        drawn = re.findall(r"^def (\w+)\(\) -> None:", (ROOT / words[0]).read_text(), re.MULTILINE)
        return next(
            (f"no picture {word}" for word in words[1:] if re.fullmatch("[a-z_]+", word) and word not in drawn), None
        )
    if program_name == "python" and words and words[0].endswith(".py") and words[0] not in OF_READERS:
        return None if (ROOT / words[0]).is_file() else f"no file {words[0]}"
    if program_name == "spinseg" and words:
        return wrong_options(typer.main.get_command(program), words)
    return None


def wrong_module(module="", *words):
    """Why `python -m` cannot run a module with these words."""
    if module != "studies":
        return None if find_spec(module.split(".")[0]) and find_spec(module) else f"no module {module}"
    from studies import paper
    from studies.__main__ import SPEED, app

    studies = typer.main.get_command(app)
    known = {"speed": SPEED, "reproduce": (*paper.WITHOUT_DATA, *paper.WITH_DATA)}
    plain = [word for word in words if re.fullmatch(r"[a-z]\w+", word)]
    if plain[:1] and plain[0] in known and plain[1:2] and plain[1] not in known[plain[0]]:
        return f"no {plain[0]} {plain[1]}"
    return wrong_options(studies, words)


def wrong_options(group, words):
    """Why a command with subcommands does not take these words."""
    name = next((word for word in words if re.fullmatch(r"[a-z]\w+", word)), None)
    if name is not None and name not in group.commands:
        return f"no command {name}"
    if name is not None:
        group.commands[name].make_context(name, [], resilient_parsing=True)  # `segment` loads its options now
    known = {flag for each in (group, group.commands.get(name, group)) for param in each.params for flag in param.opts}
    flags = [word.partition("=")[0] for word in words if re.match("--[a-z]", word)]
    return next((f"no option {flag}" for flag in flags if flag not in {*known, "--help"}), None)


def test_no_page_counts_the_seeded_faults():
    """Their number grows with the moves; no page would notice."""
    count = re.compile(r"\b\d+ (?:such )?faults\b|[Ff]aults[^.|]*, \d+ of them")
    assert [found for page in PAGES for found in count.findall(page.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_that_a_page_names_exist(page):
    assert {command: why for command in commands(page) if command and (why := wrong(command))} == {}


@pytest.mark.parametrize(
    "command",
    [
        "make everything",
        "python -m benchmarks modes",
        "python -m studies modes",
        "python -m studies speed pixels",
        "python -m studies reproduce figure9",
        "python scripts/none.py",
        "python scripts/make_pictures.py none",
        "spinseg segments a.png",
        "spinseg segment a.png --details 0.9",
    ],
)
def test_a_command_that_does_not_exist_is_noticed(command):
    assert wrong(command)


@pytest.mark.parametrize(("folder", "heading"), [("app", "## Web app"), ("napari_plugin", "## napari panel")])
def test_the_tables_of_internals_list_every_module(folder, heading):
    section = (ROOT / "docs" / "internals.md").read_text().split(heading)[1].split("\n## ")[0]
    listed = {
        Path(name).name
        for row in re.findall(r"^\|[^|]*\|", section, re.MULTILINE)
        for name in re.findall(r"`([^`]+\.py)`", row)
    }
    there = {path.name for path in (ROOT / "src" / "spinseg" / folder).glob("*.py")} - {"__init__.py"}
    assert listed == there


DECORATORS = "@cython.cfunc\n@cython.nogil\n@cython.exceptval(check=False)\n"


def test_the_recipe_for_a_likelihood_works():
    section = (ROOT / "CONTRIBUTING.md").read_text().split("## Add a likelihood\n")[1].split("\n## ")[0]
    definition, kernel = (textwrap.dedent(code) for _, code in FENCE.findall(section))
    names = dict(vars(likelihoods))
    exec(definition, names)
    times = np.random.default_rng(0).exponential(2.0, 7)
    likelihood = names["ExponentialGamma"](times, shape=1.5, rate=0.7)
    ((family, channels, statistics, parameters),) = likelihood.terms()

    parts = re.split(r"^# .*\n|\n(?=@cython.cfunc)", kernel, flags=re.MULTILINE)[1:]
    entry, name, function, branch = (part.strip("\n") for part in parts)
    last, start = "        else:\n            log_p += poisson_gamma(", f"{DECORATORS}def dense_log_marginal("
    source = text_of("likelihood").replace("\n}\n", f"\n    {entry}\n}}\n", 1)
    source = replaced(source, " = range(len(FAMILIES))", f", {name} = range(len(FAMILIES))")
    source = replaced(source, start, f"{function}\n\n\n{start}")
    source = replaced(source, last, textwrap.indent(branch, "        ") + f"\n{last}")
    types = names_of(source_of("from spinseg.sampler.kernels.state import Target"))
    kernels = names_of(re.sub(r"^from spinseg.*$", "", source, flags=re.MULTILINE), types)
    assert kernels["FAMILIES"][family](channels) == (statistics.shape[1], parameters.size)
    block = np.array([[list(kernels["FAMILIES"]).index(family), channels, 0, 1]])
    target = SimpleNamespace(block=block, parameter=np.concatenate([[1.0], parameters]))
    for sites in ([3], [0, 2, 5], np.arange(7)):
        sums = SimpleNamespace(joined=statistics[sites].sum(axis=0))
        found = kernels["dense_log_marginal"](target, sums)
        assert found == pytest.approx(likelihood.log_marginal(sites), rel=1e-12)
    assert likelihood.log_marginal([]) == pytest.approx(0)
