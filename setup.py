"""Build the kernels: each package of kernels becomes one extension module, so that they can call and inline each other.

`SPINSEG_BOUNDSCHECK=1` builds kernels that check every index.
"""

import os
import re
from pathlib import Path

import numpy as np
from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

SOURCE = Path(__file__).parent / "src"
JOINED = Path("build", "kernels")  # relative, as setuptools wants it
PACKAGES = {"spinseg.sampler.kernels": "moves agglomerate least_loss", "spinseg.image.kernels": "pixels outlines"}
CHECKED = os.environ.get("SPINSEG_BOUNDSCHECK") == "1"
DIRECTIVES = {
    "language_level": 3,
    "infer_types": True,
    "boundscheck": CHECKED,
    "wraparound": False,
    "initializedcheck": False,
    "nonecheck": False,
    "cdivision": True,
    "cpow": True,
}
CONSTANTS = re.compile(r"^([A-Z][A-Z_]*(?:, [A-Z][A-Z_]*)*) = (range\([^#\n]*\)|-?\d+)(?:  #.*)?\n", re.MULTILINE)


def joined(package: str, files: str) -> str:
    """Return the kernels of a package as one text, each file after those that it imports."""
    imports = re.compile(rf"^from {package}\.(\w+) import (?:\([^)]*\)|.*)\n", re.MULTILINE)
    order: list[str] = []

    def visit(name: str) -> None:
        text = (SOURCE / package.replace(".", "/") / f"{name}.py").read_text(encoding="utf-8")
        for other in imports.findall(text):
            visit(other)
        if name not in order:
            order.append(name)

    for name in files.split():
        visit(name)
    texts = [(SOURCE / package.replace(".", "/") / f"{name}.py").read_text(encoding="utf-8") for name in order]
    return imports.sub("", "\n".join(texts))


def write_joined(package: str, files: str) -> str:
    """Write the module to compile, with its constants apart as those of C; return its path."""
    text, constants = joined(package, files), {}
    for names, value in CONSTANTS.findall(text):
        names = names.split(", ")
        constants |= zip(names, range(len(names)) if value.startswith("range") else [int(value)], strict=True)
    folder = JOINED / package.replace(".", "/")
    folder.mkdir(parents=True, exist_ok=True)
    for part in (folder, *folder.relative_to(JOINED).parents):
        (JOINED / part if part is not folder else folder).joinpath("__init__.py").touch()
    (folder / "_compiled.py").write_text(CONSTANTS.sub("", text), encoding="utf-8")
    declared = "".join(f"    {name} = {value}\n" for name, value in constants.items())
    (folder / "_compiled.pxd").write_text(f"cpdef enum:\n{declared}" if constants else "", encoding="utf-8")
    return str(folder / "_compiled.py")


if __name__ == "__main__":
    extensions = [
        Extension(
            f"{package}._compiled",
            [write_joined(package, files)],
            include_dirs=[np.get_include()],
            library_dirs=[str(Path(np.get_include()).parents[1] / "random" / "lib")],
            libraries=["npyrandom"],
            define_macros=[("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION")],
            extra_compile_args=["-O3", "-ffp-contract=off"],
        )
        for package, files in list(PACKAGES.items())[:1]
    ]
    setup(ext_modules=cythonize(extensions, compiler_directives=DIRECTIVES, include_path=[str(JOINED)]))
