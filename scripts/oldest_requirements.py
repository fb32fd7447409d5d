"""Print the lowest versions of everything that pyproject.toml names for `make test`, as requirements of pip.

python scripts/oldest_requirements.py > requirements.txt
"""

import re
import tomllib
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]


def requirements(extra: str | None) -> list[str]:
    """Return the requirements of the package or of one of its extras, with those of the extras that it names."""
    found = []
    for line in PROJECT["dependencies"] if extra is None else PROJECT["optional-dependencies"][extra]:
        own = re.fullmatch(r"spinseg\[(.*)\]", line)
        found += [each for name in own[1].split(",") for each in requirements(name)] if own else [line]
    return found


def lowest(requirement: str) -> str:
    """Return a requirement with the lowest version that it allows, in its latest patch."""
    return re.sub(r">=\s*([\d.]+).*", r"==\1.*", requirement)


if __name__ == "__main__":
    print("\n".join(sorted({lowest(each) for each in requirements(None) + requirements("dev")})))
