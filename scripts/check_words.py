"""Keep words out that readers stumble over: python scripts/check_words.py

Prints each place in the files of the repository that has one, with what to write instead, and then exits with 1.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEXT = {".md", ".py", ".pyi", ".rst", ".ipynb", ".toml", ".html", ".js", ".yaml"}
# Some quote other people's words, and this file quotes all that it forbids.
EXCEPT = ("CHANGELOG.md", "scripts/check_words.py", "src/spinseg/app/static/vendor/")
EVERYWHERE = {
    r"; received\b": "': got', after what is wrong",
    r"\banew\b": "'again'",
    r"\b(?:come|comes) along\b": "'bundled'",
    r"\bso many\b": "the number",
    r"\bwill (?:do|not help)\b": "'is acceptable', 'does not help'",
    r"be left out where": "what is required",
    r"\b(?:against|compared with) people\b": "'validated against human annotations'",
    r"\b(?:colour|neighbour|behaviour|favour|grey\b|centre\b|normalis|analys(?:e|ed|ing)\b|labelled\b)": "American",
}
ON_PAGES = {
    r"\btold\b": "'given', 'reported', 'predicted'",
    r"\bpictures?\b": "'image', or 'figure'",
    r"\bpeople\b": "'annotators'",
    r"\bdivisions?\b": "'segmentation', 'region'",
    r"\bsettled\b": "'converged'",
    r"\bthe page\b(?! (?:about|on)\b)": "'web app'",
}
CODE = re.compile(r"```.*?^ *```|`[^`\n]*`|\]\([^)]*\)|^\s*:(?:alt|img-top|name): .*$", re.DOTALL | re.MULTILINE)


def faults_of(name: str, text: str) -> list[str]:
    """The words of a file that are to be replaced, each with its line."""
    rules = dict(EVERYWHERE)
    if name == "README.md" or (name.startswith("docs/") and name.endswith(".md")):
        rules |= ON_PAGES
        text = CODE.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), text)
    return [
        f"{name}:{text[: found.start()].count(chr(10)) + 1}: {found[0]!r}: write {instead}"
        for pattern, instead in rules.items()
        for found in re.finditer(pattern, text, re.IGNORECASE)
    ]


def main() -> int:
    """Print all faults of files that Git knows, and return the exit code."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    names = [name for name in listed if Path(name).suffix in TEXT and not name.startswith(EXCEPT)]
    present = [name for name in names if (ROOT / name).exists()]
    faults = [fault for name in present for fault in faults_of(name, (ROOT / name).read_text(encoding="utf-8"))]
    print(*faults, f"{len(present)} files, {len(faults)} words to replace", sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
