"""Check that pages of the site load nothing from elsewhere: python scripts/check_site.py docs/_build/html

Links to elsewhere are fine; scripts, styles, pictures, fonts and frames are not: they are printed, and the exit code is
then 1.
"""

import re
import sys
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


class Loads(HTMLParser):
    """What a page loads, as addresses."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what this tag loads."""
        given = {name: value or "" for name, value in attrs}
        if tag in LOADED:
            self.addresses.append(given.get(LOADED[tag], ""))
        if tag == "link" and RELATIONS & set(given.get("rel", "").split()):
            self.addresses.append(given.get("href", ""))
        self.addresses += IN_STYLE.findall(given.get("style", ""))


def loaded_from_elsewhere(file: Path) -> list[str]:
    """The addresses beyond the site that a page or a style sheet loads."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".css":
        return IN_STYLE.findall(text)
    page = Loads()
    page.feed(text)
    return [address for address in page.addresses if ELSEWHERE.match(address)]


def main(site: Path) -> int:
    """Print what each file of the site loads from elsewhere, and return the exit code."""
    files = sorted([*site.rglob("*.html"), *site.rglob("*.css")])
    found = {file: loaded for file in files if (loaded := loaded_from_elsewhere(file))}
    for file, addresses in found.items():
        print(f"{file.relative_to(site)} loads {', '.join(addresses)}")
    print(f"{len(files)} pages and style sheets, of which {len(found)} load something from elsewhere")
    return 1 if found or not files else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
