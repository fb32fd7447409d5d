"""The shape of the package: which layer may import which, and what starting up costs."""

import ast
import functools
import pydoc
import re
import resource
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import spinseg
from effort import exhaustive
from sources import SOURCE, nodes

TRIES = 6  # to be quick once: on a busy machine even the time of the processor varies
PRIVATE = {"_version", "_advice", "_errors", "_validation", "_kernels"}
TOOLS = PRIVATE | {"_run"}
# What each room may import beside itself.
ROOMS = {
    **dict.fromkeys(PRIVATE, PRIVATE),
    "_run": PRIVATE,
    "pictures": PRIVATE,
    "partition": PRIVATE,
    "graph": PRIVATE | {"partition"},
    "model": PRIVATE | {"partition", "graph"},
    "image": TOOLS | {"partition", "graph"},
    "sampler": TOOLS | {"partition", "graph", "model"},
    "clustering": TOOLS | {"partition", "graph", "model", "image", "sampler"},
    "segmentation": TOOLS | {"partition", "graph", "model", "image", "sampler"},
    "app": TOOLS | {"partition", "graph", "model", "image", "sampler", "segmentation", "pictures"},
    "napari_plugin": TOOLS | {"partition", "graph", "model", "image", "sampler", "segmentation", "pictures"},
    "cli": TOOLS | {"partition", "graph", "model", "image", "sampler", "segmentation", "pictures", "app"},
    "__main__": {"cli"},
}
# Parameters that have one type all over the package, which `Any` would hide; `TYPE_CHECKING` may name a class above.
TYPED_NAMES = (
    {
        "adjacency",
        "chain",
        "chains",
        "concentration",
        "drawn",
        "draws",
        "edges",
        "found",
        "graph",
        "labels",
        "likelihood",
    }
    | {"mask", "model", "partition", "picture", "preset", "prior", "problem", "regions", "result", "rng", "seeds"}
    | {"seg", "segmentation", "separation", "settings", "site", "sites", "state", "sweeps", "target"}
)
MAY_BE_ANY = {
    ("graph.edges", "graph"): "a graph of networkx, which need not be installed",
    ("graph.site_graph", "graph"): "a graph of networkx, which need not be installed",
    ("napari_plugin.layers", "labels"): "an array of Zarr, or of NumPy",
    ("segmentation.large.tiles", "sites"): "an array of Zarr, which need not be installed",
}


def room_of(module: str) -> str:
    """The longest name of a room that a module begins with."""
    return max((room for room in ROOMS if f"{module}.".startswith(f"{room}.")), key=len)


@functools.cache
def imports(path: Path) -> set[str]:
    """Modules of the package that a file imports, in functions, too, but not for annotations alone; named in full."""
    found, unused = set(), set()
    for node in nodes(path):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            unused |= {inner for statement in node.body for inner in ast.walk(statement)}
    for node in nodes(path):
        if node in unused:
            continue
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


MODULES = {
    ".".join(path.relative_to(SOURCE).with_suffix("").parts): path
    for path in sorted(SOURCE.rglob("*.py"))
    if path.name != "__init__.py"
}


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_only_from_the_rooms_below_its_own(module):
    room = room_of(module)
    allowed = ROOMS[room] | {room}
    assert {name for name in imports(MODULES[module]) if room_of(name) not in allowed} == set()


def test_no_modules_import_each_other_in_a_circle():
    imported = {module: imports(path) & MODULES.keys() for module, path in MODULES.items()}
    while leaves := {module for module, names in imported.items() if not names}:  # ends when a circle is left
        imported = {module: names - leaves for module, names in imported.items() if module not in leaves}
    assert imported == {}


PROJECT = tomllib.loads((SOURCE.parents[1] / "pyproject.toml").read_text())["project"]
# Modules of libraries that an extra brings; any other is a dependency.
OF_EXTRAS = {
    "cloudpickle": "distributed",
    "dask": "distributed",
    "distributed": "distributed",
    "matplotlib": "plot",
    "napari": "napari",
    "networkx": "graphs",
    "nibabel": "nifti",
    "pandas": "tables",
    "qtpy": "napari",
    "sklearn": "sklearn",
    "xarray": "diagnostics",
    "zarr": "zarr",
}
NAMES = {"PIL": "pillow", "skimage": "scikit-image", "lazy_loader": "lazy-loader"}  # where they differ from the module


def required(lines):
    """The names of the libraries in requirements."""
    return {re.match(r"[\w-]+", line)[0].lower() for line in lines}


def test_every_library_that_is_imported_is_declared_and_every_dependency_is_imported():
    found = set()
    for path in SOURCE.rglob("*.py"):
        for node in nodes(path):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) else []
            found |= {name.split(".")[0] for name in names}
    libraries = found - set(sys.stdlib_module_names) - {"spinseg", "cython"}  # which is only there to build
    core = {NAMES.get(name, name) for name in libraries - OF_EXTRAS.keys()}
    assert core == required(PROJECT["dependencies"])
    assert OF_EXTRAS.keys() <= libraries and set(OF_EXTRAS.values()) <= PROJECT["optional-dependencies"].keys()


def test_no_two_extras_are_the_same_and_none_repeats_a_dependency():
    extras = [required(lines) - {"spinseg"} for lines in PROJECT["optional-dependencies"].values()]
    assert all(extras.count(extra) == 1 for extra in extras)
    assert not set.union(*extras) & required(PROJECT["dependencies"])


@pytest.mark.parametrize("module", MODULES)
def test_what_has_a_type_of_the_package_is_not_annotated_as_anything(module):
    functions = [f for f in nodes(MODULES[module]) if isinstance(f, ast.FunctionDef)]
    parameters = [arg for f in functions for arg in (*f.args.posonlyargs, *f.args.args, *f.args.kwonlyargs)]
    hidden = {arg.arg for arg in parameters if arg.annotation and ast.unparse(arg.annotation).startswith("Any")}
    assert {name for name in hidden & TYPED_NAMES if (module, name) not in MAY_BE_ANY} == set()


@pytest.mark.parametrize("path", list(SOURCE.glob("*/kernels/*.py")), ids=lambda p: p.stem)
def test_the_kernels_import_nothing_but_each_other(path):
    kernels = f"{path.parents[1].name}.kernels."
    assert all(name == "_kernels" or name.startswith(kernels) for name in imports(path))


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
    reported = pydoc.render_doc(getattr(spinseg, name), renderer=pydoc.plaintext)
    assert getattr(spinseg, name).__doc__ and "_NestedSequence" not in reported  # what NumPy makes of ArrayLike
