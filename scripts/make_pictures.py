"""Draw the pictures of README.md: `python scripts/make_pictures.py` writes docs/images/.

Picture: coffee.png of scikit-image, by Rachel Michetti, courtesy of Pikolo Espresso Bar, CC0.
"""

from pathlib import Path

import numpy as np
from PIL import Image
from skimage.data import coffee
from skimage.transform import resize

from spinseg.image.render import mean_colours, overlay, probability_picture
from spinseg.segment import segment

IMAGES = Path(__file__).parents[1] / "docs" / "images"


def main() -> None:
    """The picture, its segmentation, and how sure each boundary is, side by side."""
    picture = coffee()
    found = segment(picture, rng=0)
    panels = [
        overlay(picture, found.labels),
        mean_colours(picture, found.labels),
        probability_picture(found.boundary_probability),
    ]
    height, width = (2 * length // 3 for length in picture.shape[:2])
    small = [resize(panel, (height, width), anti_aliasing=True) for panel in panels]
    IMAGES.mkdir(exist_ok=True)
    Image.fromarray(np.rint(255 * np.hstack(small)).astype(np.uint8)).save(IMAGES / "coffee.jpg", quality=88)
    print(f"{found.n_clusters} clusters on {found.model.graph.n_sites} sites: {IMAGES / 'coffee.jpg'}")


if __name__ == "__main__":
    main()
