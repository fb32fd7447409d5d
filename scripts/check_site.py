"""Check the pages of the site: python scripts/check_site.py docs/_build/html

Prints what is wrong, and then exits with 1:

- a page or a style sheet that loads something from elsewhere (links to elsewhere are fine);
- in the reference, a property whose first sentence became a type, attributes whose names became types, an example with
  a name that it neither imports nor defines, and a function with parameters but without what it returns;
- code of more than 72 columns, which scrolls, unless it is what a script printed or a whole source file;
- a formula without a space after the name of a function.
"""

import ast
import builtins
import re
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

LOADED = {
    "script": "src",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
    "embed": "src",
}
RELATIONS = {"stylesheet", "preload", "prefetch", "preconnect", "dns-prefetch", "icon", "modulepreload", "manifest"}
ELSEWHERE = re.compile(r"^\s*(?:[a-z]+:)?//", re.IGNORECASE)
IN_STYLE = re.compile(r"""(?:url\(|@import)\s*["']?((?:https?:)?//[^"')\s]+)""", re.IGNORECASE)
PROMPT = re.compile(r"^(?:>>>|\.\.\.) ?(.*)$", re.MULTILINE)
NO_SPACE = re.compile(
    r"(?<!<msub>)(?<!<msup>)(?<!<munder>)<mi>([a-z]{2,})</mi><m(?:[in]|sub|sup|row)>"
)  # "log" and "p"
COLUMNS = 72
PRINTED = "sphx-glr-script-out"  # the class of what a script of the gallery printed
NAMES_AS_TYPE = re.compile(r"^\w+ \((?:\w+, )*\w+,\)")  # "chains (model,)"


@dataclass
class Entry:
    """What the reference says of one name."""

    kind: str  # such as "property"
    name: str = ""
    fields: list[str] = field(default_factory=list)  # such as "Parameters"
    items: list[str] = field(default_factory=list)
    code: str = ""

    def faults(self) -> list[str]:
        """What is wrong with it."""
        faults = []
        if self.kind in ("property", "attribute") and "Type" in self.fields:
            faults.append("what stands before a colon became a type")
        if "Variables" in self.fields or any(NAMES_AS_TYPE.match(item) for item in self.items):
            faults.append("names of attributes became types")
        if undefined := undefined_names("\n".join(PROMPT.findall(self.code))):
            faults.append(f"the example does not define {', '.join(sorted(undefined))}")
        if self.kind in ("function", "method") and "Parameters" in self.fields and not RETURNED & set(self.fields):
            faults.append("parameters, but no returns")
        return [f"{self.name}: {fault}" for fault in faults]


RETURNED = {"Returns", "Return type", "Yields"}


def undefined_names(code: str) -> set[str]:
    """Names that the code uses, and that it neither assigns nor imports."""
    known, used = set(dir(builtins)), set()
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                used.add(name)
            case ast.Name(id=name) | ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                known.add(name)
            case ast.ExceptHandler(name=str(name)):
                known.add(name)
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                known |= {(alias.asname or alias.name).split(".")[0] for alias in names}
    return used - known


class Page(HTMLParser):
    """What a page loads, as addresses, and what is wrong with its entries of the reference."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.faults: list[str] = []
        self.lists: list[Entry | None] = []  # the open <dl>, with the entry that each is
        self.text: dict[str, str] = {}  # of the open tags that are read
        self.is_code = False  # in the last <div> of the highlighter

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what this tag loads or opens."""
        given = {name: value or "" for name, value in attrs}
        if tag in LOADED:
            self.addresses.append(given.get(LOADED[tag], ""))
        if tag == "link" and RELATIONS & set(given.get("rel", "").split()):
            self.addresses.append(given.get("href", ""))
        self.addresses += IN_STYLE.findall(given.get("style", ""))
        classes = given.get("class", "").split()
        if tag == "dl":
            self.lists.append(Entry(classes[1]) if classes[:1] == ["py"] else None)
        elif tag == "div" and any(name.startswith("highlight-") for name in classes):
            self.is_code = PRINTED not in classes
        elif tag == "pre" or (tag in ("dt", "p") and self.entry):
            self.text[tag] = ""
            if tag == "dt" and "sig" in classes and not self.entry.name:
                self.entry.name = given.get("id", "")

    @property
    def entry(self) -> Entry | None:
        """The innermost one that is open."""
        return next((entry for entry in reversed(self.lists) if entry), None)

    def handle_data(self, data: str) -> None:
        """Add to the text of the open tags."""
        for tag in self.text:
            self.text[tag] += data

    def handle_endtag(self, tag: str) -> None:
        """Note what was read, and check an entry that ends."""
        text, entry = self.text.pop(tag, ""), self.entry
        if tag == "dl" and self.lists and (ended := self.lists.pop()):
            self.faults += ended.faults()
        elif entry and tag == "dt":
            entry.fields.append(text.strip().removesuffix(":"))
        elif tag == "pre":
            wide = [line for line in text.splitlines() if self.is_code and len(line) > COLUMNS]
            self.faults += [f"wider than {COLUMNS} columns: {line.strip()}" for line in wide]
            if entry:
                entry.code += text + "\n"
        elif entry and tag == "p":
            entry.items.append(text)


def faults_of(file: Path) -> list[str]:
    """What is wrong with a page or a style sheet."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".css":
        return [f"loads {address}" for address in IN_STYLE.findall(text)]
    page = Page()
    page.feed(text)
    page.faults += [f"no space after {name} in a formula" for name in NO_SPACE.findall(text)]
    if "_modules" in file.parts:  # source files
        page.faults.clear()
    return [f"loads {address}" for address in page.addresses if ELSEWHERE.match(address)] + page.faults


def main(site: Path) -> int:
    """Print what is wrong with each file of the site, and return the exit code."""
    files = sorted([*site.rglob("*.html"), *site.rglob("*.css")])
    faults = [f"{file.relative_to(site)}: {fault}" for file in files for fault in faults_of(file)]
    print(*faults, f"{len(files)} pages and style sheets, {len(faults)} faults", sep="\n")
    return 1 if faults or not files else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
