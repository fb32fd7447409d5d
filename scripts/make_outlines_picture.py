"""Draw a part of a picture of 12 megapixels at full size, with outlines as they were decided on and as refined.

    python scripts/make_outlines_picture.py

writes docs/images/outlines.jpg: the bundled coffee, enlarged, with the noise of a camera, as in
`python -m studies outlines`; pixel for pixel, without refinement on the left and with it on the right.
"""

import sys
from pathlib import Path

import numpy as np
from PIL import Image
from skimage.segmentation import find_boundaries

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import spinseg as ss  # noqa: E402
from spinseg.image.render import OUTLINE_COLORS  # noqa: E402
from studies.questions.outlines import segmented, stay, twelve_megapixels  # noqa: E402

PATH = ROOT / "docs" / "images" / "outlines.jpg"
WINDOW = slice(1370, 1770), slice(2050, 2550)  # the spoon and the shadow of the saucer
GAP = 8


def main() -> None:
    """Segment the picture, and draw the window twice."""
    image = twelve_megapixels()
    found = ss.segment(image, rng=0)
    panels = []
    for labels in (segmented(image, stay)[0], found.labels):
        panel = found.picture.rgb[WINDOW].copy()
        panel[find_boundaries(labels[WINDOW])] = OUTLINE_COLORS[2][:3]
        panels += [panel, np.full((panel.shape[0], GAP, 3), 255, np.uint8)]
    Image.fromarray(np.hstack(panels[:-1])).save(PATH, quality=85)
    print(PATH)


if __name__ == "__main__":
    main()
