"""Compiled loops over pixels. Inputs are assumed valid; outputs and scratch arrays are passed in."""

import cython
from cython.cimports.libc import math


def filter_maps(
    maps: cython.float[:, :, ::1],
    across: cython.float[::1],
    down: cython.float[::1],
    columns: cython.longlong[::1],
    rows: cython.longlong[::1],
    padded: cython.float[::1],
    middle: cython.float[:, ::1],
    out: cython.float[:, :, ::1],
):
    """Correlate every map with `across` along rows and with `down` along columns.

    `columns` and `rows` are the indices of the pixels of a row and of a column that is padded at both ends.
    """
    with cython.nogil:
        for m in range(maps.shape[0]):
            for y in range(maps.shape[1]):
                for x in range(padded.shape[0]):
                    padded[x] = maps[m, y, columns[x]]
                for x in range(maps.shape[2]):
                    middle[y, x] = across[0] * padded[x]
                for t in range(1, across.shape[0]):
                    for x in range(maps.shape[2]):
                        middle[y, x] += across[t] * padded[x + t]
            for y in range(maps.shape[1]):
                for x in range(maps.shape[2]):
                    out[m, y, x] = down[0] * middle[rows[y], x]
                for t in range(1, down.shape[0]):
                    for x in range(maps.shape[2]):
                        out[m, y, x] += down[t] * middle[rows[y + t], x]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def halve_rows(
    first: cython.float[::1],
    second: cython.float[::1],
    out: cython.float[:, :, ::1],
    m: cython.Py_ssize_t,
    y: cython.Py_ssize_t,
) -> cython.void:
    """Fill out[m, y] with the means of blocks of two pixels of two rows; an odd last column is repeated."""
    for x in range(out.shape[2]):
        left, right = 2 * x, min(2 * x + 1, first.shape[0] - 1)
        out[m, y, x] = (first[left] + second[left] + first[right] + second[right]) * 0.25


def halve_maps(maps: cython.float[:, :, ::1], out: cython.float[:, :, ::1]):
    """Fill `out` with the means of blocks of 2 x 2 pixels; an odd last row is repeated."""
    with cython.nogil:
        for m in range(maps.shape[0]):
            for y in range(out.shape[1]):
                halve_rows(maps[m, 2 * y], maps[m, min(2 * y + 1, maps.shape[1] - 1)], out, m, y)


def halve_soft_bins(
    position: cython.float[:, ::1], bins: cython.float[::1], near: cython.float[:, ::1], out: cython.float[:, :, ::1]
):
    """As `halve_maps`, of a map of weights max(1 - |position - bin|, 0) for each bin; near (2, width) is scratch."""
    with cython.nogil:
        for m in range(bins.shape[0]):
            for y in range(out.shape[1]):
                for side in range(2):
                    row = min(2 * y + side, position.shape[0] - 1)
                    for x in range(position.shape[1]):
                        weight: cython.float = 1 - abs(position[row, x] - bins[m])
                        near[side, x] = weight if weight > 0 else 0
                halve_rows(near[0], near[1], out, m, y)


def max_oriented_gradient(
    dx: cython.float[:, :, ::1],
    dy: cython.float[:, :, ::1],
    cosines: cython.float[::1],
    sines: cython.float[::1],
    total: cython.float[::1],
    out: cython.float[:, ::1],
):
    """Compute max over directions of 1/2 sum over maps of |cos dx + sin dy| for each pixel."""
    with cython.nogil:
        for y in range(dx.shape[1]):
            for x in range(dx.shape[2]):
                out[y, x] = 0
            for t in range(cosines.shape[0]):
                c, s = cosines[t], sines[t]
                for x in range(dx.shape[2]):
                    total[x] = 0
                for m in range(dx.shape[0]):
                    for x in range(dx.shape[2]):
                        total[x] += abs(c * dx[m, y, x] + s * dy[m, y, x])
                for x in range(dx.shape[2]):
                    half: cython.float = 0.5 * total[x]
                    out[y, x] = half if half > out[y, x] else out[y, x]


def add_gradients_across_edges(
    dx: cython.float[:, ::1],
    dy: cython.float[:, ::1],
    place: cython.longlong[:, ::1],
    edge: cython.longlong[::1],
    direction: cython.float[:, ::1],
    squared: cython.bint,
    total: cython.float[:, ::1],
    out: cython.float[::1],
):
    """Add, for each pair of pixels across an edge, the larger of their two gradients in the pair's direction.

    A gradient is 1/2 sum over maps of |cos dx + sin dy|, or the root of the sum of squares if `squared`. dx and dy are
    (n_maps, n_pixels), and place (2, n_pairs) where each pixel lies in them; total (2, n_pairs), all 0, is scratch.
    """
    with cython.nogil:
        for m in range(dx.shape[0]):
            for side in range(2):
                for p in range(edge.shape[0]):
                    value: cython.float = (
                        direction[0, p] * dx[m, place[side, p]] + direction[1, p] * dy[m, place[side, p]]
                    )
                    total[side, p] += value * value if squared else abs(value)
        for p in range(edge.shape[0]):
            largest: cython.float = max(total[0, p], total[1, p])
            gradient: cython.float = math.sqrt(largest) if squared else 0.5 * largest
            out[edge[p]] += gradient


def add_to_sites(
    table: cython.floating[:, ::1], sites: cython.int[::1], totals: cython.double[:, ::1], sizes: cython.longlong[::1]
):
    """Add the row of each pixel, (n_pixels, n_channels), to the totals of its site, and count it; -1 is outside."""
    with cython.nogil:
        for p in range(sites.shape[0]):
            if sites[p] >= 0:
                sizes[sites[p]] += 1
                for channel in range(table.shape[1]):
                    totals[sites[p], channel] += table[p, channel]


def find_nearest(
    points: cython.float[:, ::1],
    columns: cython.float[:, ::1],
    half_norms: cython.float[::1],
    scores: cython.float[::1],
    found: cython.int[::1],
):
    """Fill `found`, (n_points,); columns (n_channels, n_centers) are the centers, and scores (n_centers,) scratch."""
    with cython.nogil:
        for p in range(found.shape[0]):
            for c in range(scores.shape[0]):
                scores[c] = half_norms[c]
            for channel in range(columns.shape[0]):
                for c in range(scores.shape[0]):
                    scores[c] -= points[p, channel] * columns[channel, c]
            best: cython.Py_ssize_t = 0
            for c in range(1, scores.shape[0]):
                if scores[c] < scores[best]:
                    best = c
            found[p] = best


def drain(
    level: cython.float[::1],
    ground: cython.float[::1],
    after: cython.longlong[::1],
    queue: cython.longlong[::1],
    is_waiting: cython.uchar[::1],
):
    """Lower the level of every pixel to that of its lowest neighbor, or to the ground, until nothing changes.

    `after` are the steps to the neighbors that come later, in rising order; pixels at the border are infinite. queue
    (n,) and is_waiting (n,), all False, are scratch. The order is that of Vincent, Morphological grayscale
    reconstruction in image analysis, IEEE Trans. Image Processing 1993, doi:10.1109/83.217222.
    """
    n: cython.Py_ssize_t = level.shape[0]
    reach: cython.Py_ssize_t = after[after.shape[0] - 1]
    first: cython.Py_ssize_t = 0
    n_waiting: cython.Py_ssize_t = 0
    with cython.nogil:
        for p in range(reach, n - reach):
            for s in range(after.shape[0]):
                level[p] = min(level[p], level[p - after[s]])
            level[p] = max(level[p], ground[p])
        for p in range(n - reach - 1, reach - 1, -1):
            for s in range(after.shape[0]):
                level[p] = min(level[p], level[p + after[s]])
            level[p] = max(level[p], ground[p])
            for s in range(after.shape[0]):
                q = p + after[s]
                if level[q] > max(level[p], ground[q]) and not is_waiting[p]:
                    queue[n_waiting], is_waiting[p] = p, 1
                    n_waiting += 1
        while n_waiting > 0:
            at: cython.Py_ssize_t = queue[first]
            first, n_waiting, is_waiting[at] = (first + 1) % n, n_waiting - 1, 0
            for t in range(2 * after.shape[0]):
                to: cython.Py_ssize_t = at - after[t] if t < after.shape[0] else at + after[t - after.shape[0]]
                lower: cython.float = max(level[at], ground[to])
                if level[to] > lower:
                    level[to] = lower
                    if not is_waiting[to]:
                        queue[(first + n_waiting) % n], is_waiting[to] = to, 1
                        n_waiting += 1
