"""Effect of tiles: mosaics segmented in tiles and as a whole, compared near the borders of tiles and elsewhere."""

import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy.sparse import coo_array

from spinseg.pictures import PICTURES
from spinseg.segmentation.large.files import open_labels
from spinseg.segmentation.large.segment_large import segment_large

SIDE, TILE_PIXELS = 2048, 512
N_MOSAICS = 4
MAX_BORDER_DISTANCE = 16  # pixels; those closer to a border of tiles count as near


def mosaic(side: int, seed: int = 0) -> NDArray[np.uint8]:
    """Return random parts of the bundled photographs, rotated and flipped, in rows."""
    rng = np.random.default_rng(seed)
    pictures = [np.asarray(Image.open(picture.path).convert("RGB")) for picture in PICTURES.values()]
    painted = np.zeros((side, side, 3), np.uint8)
    top = 0
    while top < side:
        height, left = int(rng.integers(250, 400)), 0
        while left < side:
            width = int(rng.integers(250, 450))
            picture = np.rot90(pictures[rng.integers(len(pictures))], int(rng.integers(4)))[:, :: rng.choice([-1, 1])]
            more = [max(0, want - have) for want, have in zip((height, width), picture.shape, strict=False)]
            picture = np.pad(picture, ((0, more[0]), (0, more[1]), (0, 0)), mode="reflect")
            a, b = (
                int(rng.integers(have - want + 1)) for want, have in zip((height, width), picture.shape, strict=False)
            )
            part = painted[top : top + height, left : left + width]
            part[:] = picture[a : a + part.shape[0], b : b + part.shape[1]]
            left += width
        top += height
    return painted


def apart(found: NDArray[np.int32], other: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return the pixels outside the region of `other` with the largest overlap with their own region."""
    shared = coo_array((np.ones(found.size), (found.ravel(), other.ravel()))).tocsr()
    return np.asarray(shared.argmax(axis=1)).ravel()[found] != other


def border_distance(side: int, tile: int) -> NDArray[np.int64]:
    """Return the distance of every pixel from the nearest border between tiles."""
    borders = np.arange(tile, side, tile)
    along = np.abs(np.arange(side)[:, None] - borders).min(axis=1)
    return np.minimum(along[:, None], along)


def compared(seed: int) -> dict[str, float]:
    """Return the fractions of pixels that differ, near borders of tiles and elsewhere; also between two seeds."""
    import dask.array

    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "mosaic.zarr")
        dask.array.from_array(mosaic(SIDE, seed), chunks=(512, 512, 3)).to_zarr(str(source))
        runs = {"tiles": (TILE_PIXELS, 0), "whole": (SIDE, 0), "another seed": (SIDE, 1)}
        labels, sites = {}, {}
        for name, (tile, rng) in runs.items():
            found = segment_large(source, Path(folder, name), tile=tile, rng=rng)
            labels[name] = found.labels.compute()
            sites[name] = open_labels(found.folder / "sites.zarr").compute()
    near = border_distance(SIDE, TILE_PIXELS) < MAX_BORDER_DISTANCE
    differs = {"site, tiles": sites["tiles"] != sites["whole"]}
    differs |= {f"label, {name}": apart(labels[name], labels["whole"]) for name in ("tiles", "another seed")}
    places = {"near a border": near, "elsewhere": ~near}
    return {f"{what}, {place}": float(d[at].mean()) for what, d in differs.items() for place, at in places.items()}


def study() -> dict[str, object]:
    """Return the mean over several mosaics, and the value of each: one or two regions account for most of it."""
    rows = [compared(seed) for seed in range(N_MOSAICS)]
    return {
        name: f"{np.mean([row[name] for row in rows]):.3%} ({', '.join(f'{row[name]:.3%}' for row in rows)})"
        for name in rows[0]
    }
