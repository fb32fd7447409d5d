"""Polygons of regions: outlines along the sides of pixels, as rings of corners."""

import numpy as np
from numpy.typing import NDArray
from skimage.measure import label

Corner = tuple[int, int]  # x and y: the column and the row of the pixel whose upper left corner it is
Ring = list[Corner]  # a closed outline that meets itself nowhere: its corners in order, the first of them once
Polygon = list[Ring]  # the ring around a piece, and those around its holes


def region_polygons(regions: NDArray[np.integer]) -> dict[int, list[Polygon]]:
    """Return the outlines of every region of an image, (H, W), whose regions have numbers above 0.

    Each piece of a region, of pixels that touch along sides, is a polygon. Rings may touch in corners. Where y counts
    upward, rings around pieces run counterclockwise and those around holes clockwise.
    """
    pieces = label(np.maximum(regions, 0), background=0, connectivity=1)
    width = regions.shape[1] + 1
    start, direction, piece = _sides(pieces)
    following, turns = _following(start, direction, piece, width)
    polygons: list[Polygon] = [[] for _ in range(int(pieces.max(initial=0)))]
    y, x = (values.tolist() for values in np.divmod(start, width))
    is_corner, owner, seen = turns.tolist(), piece.tolist(), [False] * start.size
    for first, after in enumerate(following):  # the first side of a piece is one of the ring around it
        if seen[first]:
            continue
        corners, side = [(x[first], y[first])], after
        seen[first] = True
        while side != first:
            seen[side] = True
            if is_corner[side]:
                corners.append((x[side], y[side]))
            side = following[side]
        polygons[owner[first] - 1].append(corners)
    found: dict[int, list[Polygon]] = {}
    numbers, pixel = np.unique(pieces, return_index=True)
    for number, place in zip(numbers.tolist(), pixel.tolist(), strict=True):
        if number > 0:
            found.setdefault(int(regions.flat[place]), []).append(polygons[number - 1])
    return dict(sorted(found.items()))


def _sides(pieces: NDArray[np.integer]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the sides of pixels on an outline, sorted: at which corner they start, their directions, and their pieces.

    Corners are numbered row by row. Directions are to the right (0), down (1), to the left (2) and up (3).
    """
    padded = np.pad(pieces, 1)
    corner = np.arange((pieces.shape[0] + 1) * (pieces.shape[1] + 1)).reshape(pieces.shape[0] + 1, -1)
    here = padded[1:-1, 1:-1]
    beside = (padded[:-2, 1:-1], padded[1:-1, 2:], padded[2:, 1:-1], padded[1:-1, :-2])
    starts = (corner[:-1, :-1], corner[:-1, 1:], corner[1:, 1:], corner[1:, :-1])
    found = []
    for direction in range(4):
        outer = (here > 0) & (beside[direction] != here)
        found.append((4 * starts[direction][outer] + direction, here[outer].astype(np.int64)))
    key, piece = (np.concatenate(parts) for parts in zip(*found, strict=True))
    order = np.argsort(key)
    return key[order] // 4, key[order] % 4, piece[order]


def _following(
    start: NDArray[np.int64], direction: NDArray[np.int64], piece: NDArray[np.int64], width: int
) -> tuple[list[int], NDArray[np.bool_]]:
    """Return the side of the same piece that follows each one, and whether a ring turns where each one starts.

    Where a piece touches itself in a corner, a ring turns to the left, so that it never comes back to a corner.
    """
    key = 4 * start + direction
    stop = start + np.array([1, width, -1, -width])[direction]
    following, turns = np.full(start.size, -1), np.zeros(start.size, bool)
    for turn in (1, 0, -1):  # to the right, on, and to the left, which is preferred
        candidate = np.searchsorted(key, wanted := 4 * stop + (direction + turn) % 4)
        candidate[candidate == key.size] = 0
        fits = (key[candidate] == wanted) & (piece[candidate] == piece)
        following[fits] = candidate[fits]
    turns[following] = direction[following] != direction
    return following.tolist(), turns
