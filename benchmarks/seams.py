"""Seams: mosaics of 2,048 x 2,048 pixels in tiles and whole, compared along the borders of tiles and elsewhere."""

import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy.sparse import coo_array

from spinseg.pictures import PICTURES
from spinseg.segmentation.large.segment_large import open_labels, segment_large

SIDE, TILE = 2048, 512
N_MOSAICS = 4
NEAR = 16  # pixels from a border


def mosaic(side: int, seed: int = 0) -> NDArray[np.uint8]:
    """Parts of the bundled photographs, turned and flipped, in rows without order."""
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
    """Pixels that are not in the region of `other` that shares most with their own."""
    shared = coo_array((np.ones(found.size), (found.ravel(), other.ravel()))).tocsr()
    return np.asarray(shared.argmax(axis=1)).ravel()[found] != other


def border_distance(side: int, tile: int) -> NDArray[np.int64]:
    """Of every pixel, how far the nearest border between tiles is."""
    borders = np.arange(tile, side, tile)
    along = np.abs(np.arange(side)[:, None] - borders).min(axis=1)
    return np.minimum(along[:, None], along)


def compared(seed: int) -> dict[str, float]:
    """Shares of pixels of one mosaic that differ, near borders of tiles and elsewhere; also between two seeds."""
    import dask.array

    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "mosaic.zarr")
        dask.array.from_array(mosaic(SIDE, seed), chunks=(512, 512, 3)).to_zarr(str(source))
        runs = {"tiles": (TILE, 0), "whole": (SIDE, 0), "another seed": (SIDE, 1)}
        labels, sites = {}, {}
        for name, (tile, rng) in runs.items():
            found = segment_large(source, Path(folder, name), tile=tile, rng=rng)
            labels[name] = found.labels.compute()
            sites[name] = open_labels(found.folder / "sites.zarr").compute()
    near = border_distance(SIDE, TILE) < NEAR
    differs = {"site, tiles": sites["tiles"] != sites["whole"]}
    differs |= {f"label, {name}": apart(labels[name], labels["whole"]) for name in ("tiles", "another seed")}
    places = {"near a border": near, "elsewhere": ~near}
    return {f"{what}, {place}": float(d[at].mean()) for what, d in differs.items() for place, at in places.items()}


def study() -> dict[str, object]:
    """Of several mosaics, since a region or two that go otherwise make up most of it: the mean, and each."""
    rows = [compared(seed) for seed in range(N_MOSAICS)]
    return {
        name: f"{np.mean([row[name] for row in rows]):.3%} ({', '.join(f'{row[name]:.3%}' for row in rows)})"
        for name in rows[0]
    }
