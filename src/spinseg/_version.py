"""The version of this code, which stored results name: between releases, with the commit.

It runs alone, without the package, since a build backend takes the version of an sdist or a wheel from it.
"""

import re
from pathlib import Path

RELEASE = "0.3.0.dev0"  # ends in .dev0 between releases, and is then that of the next one
COMMIT_DIGITS = 10


def version_of(source: Path) -> str:
    """Return the version of the package in a folder: what an installation or an sdist records, or that of a clone."""
    records = list(source.parent.glob(f"spinseg-{RELEASE}*.dist-info/METADATA"))  # beside an installed package
    root = source.parents[1]
    if source.parent.name == "src":
        records.append(root / "PKG-INFO")  # of an sdist
    for record in records:
        found = re.search(r"^Version: (\S+)$", record.read_text(encoding="utf-8"), re.M) if record.is_file() else None
        if found and found[1].startswith(RELEASE):
            return found[1]
    commit = commit_of(root) if source.parent.name == "src" else ""
    return f"{RELEASE}+g{commit[:COMMIT_DIGITS]}" if commit else RELEASE


def commit_of(clone: Path) -> str:
    """Return the commit that a clone is at, from the files of Git, which need not be installed; empty without one."""
    folder = clone / ".git"
    try:
        if folder.is_file():  # of a worktree, which shares branches with the first one
            folder = clone / folder.read_text().removeprefix("gitdir:").strip()
        head = (folder / "HEAD").read_text().strip()
        if not head.startswith("ref: "):
            return head
        branch = head.removeprefix("ref: ")
        shared = folder / (folder / "commondir").read_text().strip() if (folder / "commondir").is_file() else folder
        if (shared / branch).is_file():
            return (shared / branch).read_text().strip()
        packed = (shared / "packed-refs").read_text().split()
        return packed[packed.index(branch) - 1]
    except (OSError, ValueError):
        return ""


VERSION = version_of(Path(__file__).absolute().parent) if ".dev" in RELEASE else RELEASE
