"""Do for a release what can be done on one machine: python scripts/release_check.py

Versions agree; workflows, issue forms and the citation are valid; sdist and wheel are built and checked; both are
installed in fresh environments far from the repository, where the demo, the Python of the README and the page must
work.
"""

import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.request
from pathlib import Path

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent


def run(*command: object, cwd: Path = ROOT) -> str:
    """Run a command, show it, and return what it printed; the check ends where it fails."""
    print("$", *command, flush=True)
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}\nfailed with exit code {done.returncode}")
    return done.stdout


def agree(what: str, found: object, expected: object) -> None:
    """End the check unless two things are equal."""
    if found != expected:
        sys.exit(f"{what} must be {expected}; found {found}")


def check_versions() -> str:
    """The version of the package, which all other files must name, too."""
    version = re.search(r'RELEASE = "(.+?)"', (ROOT / "src/spinseg/_version.py").read_text())[1]
    if ".dev" in version:
        sys.exit(f"{version} in src/spinseg/_version.py is between releases: set RELEASE to the version of the release")
    agree(
        "the version of CITATION.cff",
        re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.M)[1],
        version,
    )
    agree(
        "the newest version of CHANGELOG.md",
        re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.M)[1],
        version,
    )
    recipe = (ROOT / "conda/recipe.yaml").read_text()
    agree("the version of the recipe", re.search(r"^  version: (.+)$", recipe, re.M)[1], version)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [re.sub(r"(>=)", r" \1", name) for name in project["dependencies"]]
    listed = re.search(r"- python >=\$\{\{ python_min \}\}\n((?:    - .+\n)+)", recipe)[1]
    agree("the requirements of the recipe", re.findall(r"- (.+)", listed), wanted)
    return version


def check_forms() -> None:
    """Workflows, issue forms and the citation, by their schemas; workflows also for unsafe ways."""
    schema = (BIN / "check-jsonschema", "--builtin-schema")
    run(*schema, "vendor.github-workflows", *sorted((ROOT / ".github/workflows").glob("*.yml")))
    run(*schema, "vendor.github-issue-forms", *sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml")))
    run(*schema, "vendor.citation-file-format", ROOT / "CITATION.cff")
    run(BIN / "zizmor", "--offline", "--quiet", ROOT / ".github")


def build(version: str) -> list[Path]:
    """Sdist and wheel, in `dist`."""
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", "dist", ".")
    files = sorted((ROOT / "dist").iterdir())
    kinds = [re.sub(r"-cp\d+-cp\d+-\w+\.whl", "-*.whl", file.name) for file in files]  # the wheel is of this machine
    agree("the files of dist", kinds, [f"spinseg-{version}-*.whl", f"spinseg-{version}.tar.gz"])
    run(sys.executable, "-m", "twine", "check", "--strict", *files)
    for file in files:
        content = file.read_bytes()
        print(f"  {file.name}: {len(content) / 2**20:.1f} MB, sha256 {hashlib.sha256(content).hexdigest()}")
    return files


def try_out(file: Path, version: str) -> None:
    """Install a file in a fresh environment, and use it as a person would, far from the repository."""
    with tempfile.TemporaryDirectory() as name:
        away = Path(name)
        run(sys.executable, "-m", "venv", "venv", cwd=away)
        python, command = (away / "venv/bin" / program for program in ("python", "spinseg"))
        run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"{file}[tables]", cwd=away)
        agree("spinseg --version", run(command, "--version", cwd=away).split()[-1], version)
        run(command, "demo", cwd=away)
        agree("what the demo wrote", (away / "spinseg-demo").is_dir(), True)
        shutil.copy(ROOT / "README.md", away)
        run(python, "-m", "doctest", "README.md", cwd=away)
        check_page(command, away)


def check_page(command: Path, away: Path) -> None:
    """The page answers."""
    print("$", command, "app --no-browser", flush=True)
    with subprocess.Popen(
        [command, "app", "--no-browser"], cwd=away, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as server:
        try:
            address = next(
                found[0] for line in server.stdout if (found := re.search(r"http://127\.0\.0\.1:\d+\S*", line))
            )
            for _ in range(100):
                try:
                    with urllib.request.urlopen(address) as page:
                        agree("the title of the page", "spinseg" in page.read().decode(), True)
                    return
                except OSError:
                    time.sleep(0.3)
            sys.exit(f"{address} does not answer")
        finally:
            server.terminate()


def main() -> None:
    """All checks, in order."""
    version = check_versions()
    check_forms()
    for file in build(version):
        try_out(file, version)
    print(f"spinseg {version} can be released: dist has its files")


if __name__ == "__main__":
    main()
