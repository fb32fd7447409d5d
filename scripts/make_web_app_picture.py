"""Draw the web app in Debian's chromium, light beside dark, as docs/images/web_app.jpg.

python scripts/make_web_app_picture.py
"""

import io
import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
from studies.speed.app import server  # noqa: E402

SIZE = (1280, 800)
VIEWS = (("light", "#example=astronaut", None), ("dark", "#example=coffee", (420, 265)))  # and a place to click
NOTE_SECONDS = 9  # for which messages cover a part of the image


def screenshot(browser: Browser, address: str, scheme: str, link: str, place: tuple[int, int] | None) -> Image.Image:
    """Take a screenshot when the chains have converged, and after a click at `place` if one is given."""
    page = browser.new_page(viewport={"width": SIZE[0], "height": SIZE[1]}, color_scheme=scheme)  # type: ignore[arg-type]
    page.goto(address + link)
    page.wait_for_selector('body[data-enough="true"][data-state="paused"]', timeout=300_000)
    page.wait_for_timeout(NOTE_SECONDS * 1000)
    if place is not None:
        page.click("#canvas", position={"x": place[0], "y": place[1]})
        page.wait_for_selector("#legend", state="visible")
        page.wait_for_timeout(1000)
    picture = Image.open(io.BytesIO(page.screenshot()))
    page.close()
    return picture


def main() -> None:
    """Draw the picture and save it."""
    with server() as (port, _), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        both = Image.new("RGB", (2 * SIZE[0] + 24, SIZE[1]), "white")
        for i, (scheme, link, place) in enumerate(VIEWS):
            both.paste(screenshot(browser, f"http://127.0.0.1:{port}/", scheme, link, place), (i * (SIZE[0] + 24), 0))
        browser.close()
    both.resize((both.width * 3 // 4, both.height * 3 // 4), Image.Resampling.LANCZOS).save(
        ROOT / "docs" / "images" / "web_app.jpg", quality=88
    )


if __name__ == "__main__":
    main()
