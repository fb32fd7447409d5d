"""Polygons of regions: outlines along the sides of pixels, as rings of corners."""

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Corner = tuple[int, int]  # x and y: the column and the row of the pixel whose upper left corner it is


class Ring(NamedTuple):
    """A closed outline that meets itself nowhere: its corners in order, the first of them once.

    `area` is that within, negative where it is the outline of a hole.
    """

    corners: list[Corner]
    area: int


def region_rings(regions: NDArray[np.integer]) -> dict[int, list[Ring]]:
    """The outlines of every region of a picture, (H, W), whose regions have numbers above 0.

    A region of pixels that touch along sides has one ring around it and one around each of its holes. Rings may touch
    in corners. Where y counts upward, rings around regions run counterclockwise and those around holes clockwise.

    Examples
    --------
    >>> region_rings(np.array([[1, 1, 2]]))[2]
    [Ring(corners=[(2, 0), (3, 0), (3, 1), (2, 1)], area=1)]
    """
    start, stop, of = _sides(regions)
    order = np.argsort(of, kind="stable")
    numbers, first = np.unique(of[order], return_index=True)
    width = regions.shape[1] + 1
    rings = {}
    for number, part in zip(numbers.tolist(), np.split(order, first[1:]), strict=True):
        following = defaultdict(list)
        for a, b in zip(start[part].tolist(), stop[part].tolist(), strict=True):
            following[a].append(b)
        rings[number] = [_ring(corners, width) for corners in _simple_cycles(following)]
    return rings


def _sides(regions: NDArray[np.integer]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The sides of pixels that lie on an outline: the corners where they start and stop, and the region to the left.

    A corner is numbered row by row. Where y counts upward, the region lies to the left of its sides.
    """
    padded = np.pad(regions, 1)
    corner = np.arange((regions.shape[0] + 1) * (regions.shape[1] + 1)).reshape(regions.shape[0] + 1, -1)
    here = padded[1:-1, 1:-1]
    found = []
    for other, a, b in (
        (padded[:-2, 1:-1], corner[:-1, :-1], corner[:-1, 1:]),  # the upper side, to the right
        (padded[1:-1, 2:], corner[:-1, 1:], corner[1:, 1:]),  # the right side, down
        (padded[2:, 1:-1], corner[1:, 1:], corner[1:, :-1]),  # the lower side, to the left
        (padded[1:-1, :-2], corner[1:, :-1], corner[:-1, :-1]),  # the left side, up
    ):
        outer = (here > 0) & (other != here)
        found.append((a[outer], b[outer], here[outer].astype(np.int64)))
    start, stop, of = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return start, stop, of


def _simple_cycles(following: dict[int, list[int]]) -> Iterator[list[int]]:
    """The cycles of corners that follow each other, each closed at the first corner that it meets again.

    Every corner has as many sides that lead to it as lead away, so that each walk ends where it began.
    """
    for first in list(following):
        while following[first]:
            walk, place, corner = [first], {first: 0}, first
            while following[corner]:
                corner = following[corner].pop()
                if corner in place:
                    since = place[corner]
                    yield walk[since:]
                    for passed in walk[since + 1 :]:
                        del place[passed]
                    del walk[since + 1 :]
                else:
                    place[corner] = len(walk)
                    walk.append(corner)


def _ring(corners: list[int], width: int) -> Ring:
    """The ring of a cycle of corners, of which those between two sides along a line are left out."""
    y, x = np.divmod(np.array(corners), width)
    area = int(np.sum(x * np.roll(y, -1) - np.roll(x, -1) * y)) // 2
    turns = (np.roll(x, 1) != np.roll(x, -1)) & (np.roll(y, 1) != np.roll(y, -1))
    return Ring(list(zip(x[turns].tolist(), y[turns].tolist(), strict=True)), area)


def polygons(rings: list[Ring]) -> list[list[list[Corner]]]:
    """The rings of one region as polygons: each a ring around it, and those of its holes.

    There is one polygon unless pieces of the region do not touch along sides.
    """
    outer = sorted((ring for ring in rings if ring.area > 0), key=lambda ring: ring.area)
    found: list[list[list[Corner]]] = [[ring.corners] for ring in outer]
    for hole in (ring for ring in rings if ring.area < 0):
        around = [i for i, ring in enumerate(outer) if len(outer) == 1 or _is_within(hole, ring)]
        found[around[0]].append(hole.corners)  # the smallest
    return found


def _is_within(hole: Ring, ring: Ring) -> bool:
    """Whether a hole lies within a ring, by the pixel of the region at the hole's first corner.

    A line from the middle of that pixel to the left crosses the upright sides of a ring around it an odd number of
    times.
    """
    (x, y), (next_x, next_y) = hole.corners[0], hole.corners[1]
    dx, dy = np.sign(next_x - x), np.sign(next_y - y)
    column, row = x + (dx - dy) / 2, y + (dx + dy) / 2  # to the left of the first side lies the region
    corners = np.array(ring.corners)
    (x0, y0), (x1, y1) = corners.T, np.roll(corners, -1, axis=0).T
    crossed = (x0 == x1) & (x0 < column) & (np.minimum(y0, y1) < row) & (row < np.maximum(y0, y1))
    return bool(np.count_nonzero(crossed) % 2)
