"""Draw docs/images/napari.jpg, napari with the panel: xvfb-run python scripts/make_napari_picture.py

It needs the extra [napari], and where there is no display Debian's xvfb. The canvas is drawn by OpenGL, in software if
LIBGL_ALWAYS_SOFTWARE=1 is set.
"""

import time
from collections.abc import Callable
from pathlib import Path

import napari
from PIL import Image
from qtpy.QtWidgets import QApplication

from spinseg.napari_plugin.widget import SegmentationPanel

SIZE, WIDTH = (1240, 700), 1800  # of the window, and of the picture with two of them
PLACE = (180, 300)  # to click, in the coffee
TARGET = Path(__file__).parents[1] / "docs" / "images" / "napari.jpg"


def work_until(true: Callable[[], bool]) -> None:
    """Let Qt work until a condition holds, and then for a second more, in which the canvas is drawn."""
    until = None
    while until is None or time.monotonic() < until:
        QApplication.processEvents()
        time.sleep(0.01)
        if until is None and true():
            until = time.monotonic() + 1


def main() -> None:
    """Draw the picture and save it."""
    viewer = napari.Viewer()
    viewer.window.resize(*SIZE)
    viewer.open_sample("spinseg", "coffee")
    _, panel = viewer.window.add_plugin_dock_widget("spinseg", "Segmentation")
    assert isinstance(panel, SegmentationPanel)
    work_until(lambda: True)
    panel.start()
    work_until(lambda: panel.worker is None)
    both = Image.new("RGB", (2 * SIZE[0] + 24, SIZE[1]), "white")
    for i in range(2):
        if i:
            panel.show_together(PLACE)
        viewer.reset_view(margin=0.02)
        work_until(lambda: True)
        shot = viewer.screenshot(canvas_only=False, flash=False)
        both.paste(Image.fromarray(shot[..., :3]), (i * (SIZE[0] + 24), 0))
    height = both.height * WIDTH // both.width
    both.resize((WIDTH, height), Image.Resampling.LANCZOS).save(TARGET, quality=82)
    viewer.close()


if __name__ == "__main__":
    main()
