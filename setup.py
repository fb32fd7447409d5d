"""Build the kernels: those of a package become one extension module, so that they call and inline each other.

`SPINSEG_BOUNDSCHECK=1` builds kernels that check every index. Where the machine has no C compiler, that of PyPI's
`ziglang` is used.
"""

import os
import re
import runpy
import shlex
import shutil
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

SOURCE = Path(__file__).parent / "src"
CHECKED = os.environ.get("SPINSEG_BOUNDSCHECK") == "1"
JOINED = Path("build", "checked" if CHECKED else "unchecked")  # relative, as setuptools wants it
PACKAGES = {
    "spinseg.sampler.kernels": ("moves", "agglomerate", "least_loss"),
    "spinseg.image.kernels": ("pixels", "outlines"),
}
STUDIES = {"studies.evaluation.baselines.ddcrp_kernels": ("links",)}  # in a clone that is installed as editable
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
IMPORTS = re.compile(r"^from ([\w.]*kernels\.\w+) import (?:\([^)]*\)|.*)\n", re.MULTILINE)
CONSTANTS = re.compile(r"^([A-Z][A-Z_]*(?:, [A-Z][A-Z_]*)*) = (range\([^#\n]*\)|-?\d+)(?:  #.*)?\n", re.MULTILINE)
FLAGS = ["-O3", "-ffp-contract=off", "-g0", "-w"]  # without contraction the draws are those of the sources
NO_COMPILER = "spinseg needs a C compiler to be built: install gcc or clang, or Microsoft's Build Tools on Windows"
NO_HEADERS = "spinseg needs the headers of Python to be built: install python3-dev, or python3-devel"


def joined(package: str, files: tuple[str, ...]) -> str:
    """Return the kernels of a package, and those that they import, as one text, each file after those it imports."""
    texts: dict[str, str] = {}

    def add(module: str) -> None:
        root = SOURCE if module.startswith("spinseg.") else SOURCE.parent
        text = root.joinpath(*module.split(".")).with_suffix(".py").read_text(encoding="utf-8")
        for other in IMPORTS.findall(text):
            add(other)
        texts.setdefault(module, IMPORTS.sub("", text))

    for name in files:
        add(f"{package}.{name}")
    return "\n".join(texts.values())


def write(path: Path, text: str) -> None:
    """Write a file, unless it has this text: what is newer is built again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def joined_extension(package: str, files: tuple[str, ...]) -> Extension:
    """Write the module to compile, with its whole numbers apart as constants of C, and return the extension."""
    import numpy as np

    text, constants = joined(package, files), {}
    for names, value in CONSTANTS.findall(text):
        numbers = range(names.count(",") + 1) if value.startswith("range") else [int(value)]
        constants |= zip(names.split(", "), numbers, strict=True)
    folder = JOINED.joinpath(*package.split("."))
    for part in (folder, *folder.parents[:-2]):
        write(part / "__init__.py", "")
    declared = "".join(f"    {name} = {value}\n" for name, value in constants.items())
    write(folder / "_compiled.pxd", f"cpdef enum:\n{declared}" if constants else "")
    write(folder / "_compiled.py", CONSTANTS.sub("", text))
    include = Path(np.get_include())
    return Extension(
        f"{package}._compiled",
        [str(folder / "_compiled.py")],
        depends=[str(folder / "_compiled.pxd")],
        include_dirs=[str(include)],
        library_dirs=[str(include.parents[1] / "random" / "lib")],
        libraries=["npyrandom"],
        define_macros=[("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION")],
    )


def has_compiler() -> bool:
    """Return whether there is the C compiler that setuptools would call; on Windows it looks for one itself."""
    command = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    return sys.platform == "win32" or shutil.which(command[0]) is not None


class BuildKernels(build_ext):
    """Cython's sources from ours, compiled side by side, by the machine's compiler or by that of `ziglang`."""

    def finalize_options(self) -> None:
        """Join the sources and let Cython write C."""
        from Cython.Build import cythonize

        is_clone = (self.inplace or self.editable_mode) and SOURCE.with_name("studies").exists()
        packages = PACKAGES | (STUDIES if is_clone else {})
        extensions = [joined_extension(package, files) for package, files in packages.items()]
        self.distribution.ext_modules = cythonize(
            extensions, compiler_directives=DIRECTIVES, include_path=[str(JOINED)], quiet=True
        )
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def run(self) -> None:
        """Find a compiler, and build."""
        if not has_compiler():
            if find_spec("ziglang") is None:
                sys.exit(NO_COMPILER)
            os.environ["CC"] = f"{shlex.quote(sys.executable)} -m ziglang cc"
        if not Path(sysconfig.get_path("include"), "Python.h").exists():
            sys.exit(NO_HEADERS)
        super().run()

    def build_extensions(self) -> None:
        """Set the options of the compiler, which is known now."""
        for extension in self.extensions:
            extension.extra_compile_args = ["/O2"] if self.compiler.compiler_type == "msvc" else FLAGS
        super().build_extensions()


if __name__ == "__main__":
    setup(
        package_dir={"": "src", "studies": "studies"},
        version=runpy.run_path(str(SOURCE / "spinseg" / "_version.py"))["VERSION"],
        ext_modules=[Extension(f"{package}._compiled", []) for package in PACKAGES],
        cmdclass={"build_ext": BuildKernels},
        setup_requires=[] if has_compiler() else ["ziglang"],
    )
