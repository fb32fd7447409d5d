"""Draw the pictures of the site's front page: python scripts/make_front_pictures.py

writes docs/images/front.jpg, which is what `seg.plot()` of the three lines there draws, and docs/_static/levels.webp,
the level of detail from 0 to 1 and back, with levels.jpg, its still picture for readers who switched off motion.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image, ImageDraw, ImageFont

import spinseg as ss
from spinseg.image.render import outlined
from spinseg.pictures import PICTURES

DOCS = Path(__file__).parents[1] / "docs"
SIDE, STRIP, STEPS, MILLISECONDS = 360, 56, 21, 220
STILL = 0.65


def plotted() -> None:
    """Run the three lines of the front page, and save what they draw."""
    seg = ss.segment(PICTURES["coffee"].path, rng=0)
    print(seg)
    seg.plot()
    how = {"quality": 82, "subsampling": 0}  # thin lines keep their color
    plt.savefig(DOCS / "images" / "front.jpg", dpi=125, bbox_inches="tight", pil_kwargs=how)
    plt.close()


def frame(seg: ss.Segmentation, level: float) -> Image.Image:
    """The regions at a level of detail, as outlines and in their mean colors, over a slider."""
    at = seg.at(level)
    panels = [outlined(at.picture.rgb, at.labels), ss.mean_colors(at.picture, at.labels)]
    drawn = Image.new("RGB", (2 * SIDE, SIDE + STRIP), "white")
    for i, panel in enumerate(panels):
        drawn.paste(Image.fromarray(panel).resize((SIDE, SIDE), Image.Resampling.LANCZOS), (i * SIDE, 0))
    draw, y, left, right = ImageDraw.Draw(drawn), SIDE + STRIP // 2, 285, 2 * SIDE - 170
    font = ImageFont.load_default(24)
    x = left + level * (right - left)
    draw.text((12, y), f"Level of detail {level:.2f}", "#222832", font, anchor="lm")
    draw.line((left, y, right, y), "#c0c5cc", 5)
    draw.line((left, y, x, y), "#2260bd", 5)
    draw.ellipse((x - 9, y - 9, x + 9, y + 9), "#2260bd")
    draw.text((2 * SIDE - 12, y), f"{at.n_clusters} regions", "#222832", font, anchor="rm")
    return drawn


def animated() -> None:
    """Save the level of detail from 0 to 1 and back, and one of its pictures."""
    seg = ss.segment(PICTURES["astronaut"].path, rng=0)
    up = [frame(seg, float(level)) for level in np.linspace(0, 1, STEPS)]
    frames = [*up, *up[-2:0:-1]]
    file = DOCS / "_static" / "levels.webp"
    frames[0].save(file, save_all=True, append_images=frames[1:], duration=MILLISECONDS, loop=0, quality=45, method=6)
    frame(seg, STILL).save(DOCS / "_static" / "levels.jpg", quality=85, subsampling=0)
    print(f"{file}: {len(frames)} frames, {file.stat().st_size // 1000} kB")


if __name__ == "__main__":
    plotted()
    animated()
