"""The shape of the package: which layer may import which, and what starting up costs."""

import ast
import functools
import graphlib
import pydoc
import resource
import subprocess
import sys
from pathlib import Path

import pytest

import spinseg
from effort import exhaustive

SOURCE = Path(__file__).parents[1] / "src" / "spinseg"
TRIES = 6  # to be quick once: on a busy machine even the time of the processor varies
# The data flow, left to right. A graph is the noun that images and models share.
ORDER = [
    "_version",
    "_errors",
    "_words",
    "_validation",
    "_compiled",
    "_bundle",
    "_run",
    "graph",
    "partition",
    "image",
    "model",
    "sampler",
    "clustering",
    "pictures",
    "segmentation.numbering",
    "segmentation.settings",
    "segmentation.presets",
    "segmentation.python_code",
    "segmentation.prior_names",
    "segmentation.image_model",
    "segmentation.region_table",
    "segmentation.estimate",
    "segmentation.hierarchy",
    "segmentation.verdict",
    "segmentation.draws",
    "segmentation.report",
    "segmentation.exports",
    "segmentation.display",
    "segmentation.files",
    "segmentation.result",
    "segmentation.problem",
    "segmentation.segment",
    "segmentation",
    "app",
    "napari_plugin",
    "cli",
    "__main__",
]


def layer(module: str) -> int:
    """Place of a module in ORDER: that of the longest name that it begins with."""
    fits = [i for i, name in enumerate(ORDER) if module == name or module.startswith(name + ".")]
    return max(fits, key=lambda i: len(ORDER[i]))


def imports(path: Path, annotated: bool = True) -> set[str]:
    """Modules of the package that a file imports, anywhere in it; they must be named in full.

    Those for annotations alone are left out if `annotated` is false.
    """
    found, tree = set(), ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING" and not annotated:
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.split(".")[0] == "spinseg"}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            module = node.module or ""
            if module.split(".")[0] == "spinseg":
                inner = {f"{module}.{alias.name}" for alias in node.names}
                modules = {name for name in inner if is_module(name)}
                found |= modules or {module}
    assert "spinseg" not in found, f"{path} imports the package itself"
    return {name.removeprefix("spinseg.") for name in found}


def is_module(name: str) -> bool:
    """Whether a dotted name is a file or a folder of the package."""
    place = SOURCE.parent / name.replace(".", "/")
    return place.is_dir() or place.with_suffix(".py").exists()


@pytest.mark.parametrize("path", [p for p in SOURCE.rglob("*.py") if p.name != "__init__.py"], ids=lambda p: p.stem)
def test_a_module_imports_only_from_what_stands_left_of_it(path):
    module = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
    for imported in imports(path):
        assert layer(imported) <= layer(module), f"{module} imports {imported}"


def test_modules_of_the_sampler_do_not_import_in_a_circle():
    """Nor within functions; only annotations may name what imports a module."""
    paths = (SOURCE / "sampler").rglob("*.py")
    graph = {".".join(p.relative_to(SOURCE).with_suffix("").parts): imports(p, annotated=False) for p in paths}
    graphlib.TopologicalSorter(graph).prepare()  # raises CycleError


@pytest.mark.parametrize("path", list((SOURCE / "sampler" / "kernels").glob("*.py")), ids=lambda p: p.stem)
def test_the_kernels_import_nothing_but_each_other_and_how_they_are_compiled(path):
    assert all(name in ("_bundle", "_compiled") or name.startswith("sampler.kernels.") for name in imports(path))


def cpu_seconds(command):
    """That Python takes for a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *command], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)


@pytest.mark.parametrize("command", [["-c", "import spinseg"], ["-m", "spinseg", "--help"]], ids=["import", "help"])
def test_starting_up_costs_less_than_a_second_of_cpu(command):
    assert any(cpu_seconds(command) < 1.0 for _ in range(TRIES))  # the first warms the caches


@exhaustive
def test_the_first_sampling_call_with_a_warm_cache_adds_less_than_two_seconds():
    script = (
        "import time, spinseg as ss\n"
        "model = ss.Model(ss.SiteGraph(2, [[0, 1]]), ss.PoissonGamma([1, 2]), ss.DirichletProcess(1.0), 0.1)\n"
        "began = time.process_time(); ss.sample(model, sweeps=2, rng=0); print(time.process_time() - began)"
    )
    run = functools.partial(subprocess.run, [sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert any(float(run().stdout) < 2.0 for _ in range(TRIES))


def test_the_reference_names_all_that_is_public_and_each_has_an_example():
    listed = (SOURCE.parents[1] / "docs" / "reference" / "index.md").read_text().split()
    public = [name for name in dir(spinseg) if name != "__version__"]
    assert [name for name in public if name not in listed] == []
    assert [name for name in public if ">>>" not in (getattr(spinseg, name).__doc__ or "")] == []


@pytest.mark.parametrize("name", [name for name in spinseg.__all__ if name != "__version__"])
def test_every_public_name_explains_itself_in_words_that_a_person_can_read(name):
    told = pydoc.render_doc(getattr(spinseg, name), renderer=pydoc.plaintext)
    assert getattr(spinseg, name).__doc__ and "_NestedSequence" not in told  # what NumPy makes of ArrayLike
