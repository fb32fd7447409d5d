"""Compiled loops over pixels. Inputs are assumed valid; outputs and scratch arrays are passed in."""

import numpy as np

from spinseg._compiled import internal, jit


@jit
def filter_maps(maps, across, down, columns, rows, padded, middle, out):  # type: ignore[no-untyped-def]
    """Correlate every map with `across` along rows and with `down` along columns.

    `columns` and `rows` are the indices of the pixels of a row and of a column that is padded at both ends.
    """
    n_maps, height, width = maps.shape
    for m in range(n_maps):
        for y in range(height):
            for x in range(padded.size):
                padded[x] = maps[m, y, columns[x]]
            line = middle[y]
            for x in range(width):
                line[x] = across[0] * padded[x]
            for t in range(1, across.size):
                for x in range(width):
                    line[x] += across[t] * padded[x + t]
        for y in range(height):
            line = out[m, y]
            first = middle[rows[y]]
            for x in range(width):
                line[x] = down[0] * first[x]
            for t in range(1, down.size):
                other = middle[rows[y + t]]
                for x in range(width):
                    line[x] += down[t] * other[x]


@internal
def halve_rows(first, second, out):  # type: ignore[no-untyped-def]
    """Fill `out` with the means of blocks of two pixels of two rows; an odd last column is repeated."""
    for x in range(out.size):
        left, right = 2 * x, min(2 * x + 1, first.size - 1)
        out[x] = (first[left] + second[left] + first[right] + second[right]) * np.float32(0.25)


@jit
def halve_maps(maps, out):  # type: ignore[no-untyped-def]
    """Fill `out` with the means of blocks of 2 x 2 pixels; an odd last row is repeated."""
    n_maps, height, _ = maps.shape
    for m in range(n_maps):
        for y in range(out.shape[1]):
            halve_rows(maps[m, 2 * y], maps[m, min(2 * y + 1, height - 1)], out[m, y])


@jit
def halve_soft_bins(position, bins, near, out):  # type: ignore[no-untyped-def]
    """As `halve_maps`, of a map of weights max(1 - |position - bin|, 0) for each bin; near (2, width) is scratch."""
    height, width = position.shape
    for m in range(bins.size):
        for y in range(out.shape[1]):
            for side in range(2):
                row = position[min(2 * y + side, height - 1)]
                for x in range(width):
                    near[side, x] = max(np.float32(1) - abs(row[x] - bins[m]), np.float32(0))
            halve_rows(near[0], near[1], out[m, y])


@jit
def max_oriented_gradient(dx, dy, cosines, sines, total, out):  # type: ignore[no-untyped-def]
    """Compute max over directions of 1/2 sum over maps of |cos dx + sin dy| for each pixel."""
    n_maps, height, width = dx.shape
    for y in range(height):
        for x in range(width):
            out[y, x] = 0
        for t in range(cosines.size):
            c, s = cosines[t], sines[t]
            for x in range(width):
                total[x] = 0
            for m in range(n_maps):
                right, below = dx[m, y], dy[m, y]
                for x in range(width):
                    total[x] += abs(c * right[x] + s * below[x])
            for x in range(width):
                out[y, x] = max(out[y, x], np.float32(0.5) * total[x])


@jit
def add_gradients_across_edges(dx, dy, place, edge, direction, squared, total, out):  # type: ignore[no-untyped-def]
    """Add, for each pair of pixels across an edge, the larger of their two gradients in the pair's direction.

    A gradient is 1/2 sum over maps of |cos dx + sin dy|, or the root of the sum of squares if `squared`. dx and dy are
    (n_maps, n_pixels), and place (2, n_pairs) where each pixel lies in them; total (2, n_pairs), all 0, is scratch.
    """
    for m in range(dx.shape[0]):
        for side in range(2):
            for p in range(edge.size):
                value = direction[0, p] * dx[m, place[side, p]] + direction[1, p] * dy[m, place[side, p]]
                total[side, p] += value * value if squared else abs(value)
    for p in range(edge.size):
        largest = max(total[0, p], total[1, p])
        out[edge[p]] += np.sqrt(largest) if squared else np.float32(0.5) * largest


@jit
def add_to_sites(table, sites, totals, sizes):  # type: ignore[no-untyped-def]
    """Add the row of each pixel, (n_pixels, n_channels), to the totals of its site, and count it; -1 is outside."""
    for p in range(sites.size):
        if sites[p] >= 0:
            sizes[sites[p]] += 1
            for channel in range(table.shape[1]):
                totals[sites[p], channel] += table[p, channel]


@jit
def find_nearest(points, columns, half_norms, scores, found):  # type: ignore[no-untyped-def]
    """Fill `found`, (n_points,); columns (n_channels, n_centers) are the centers, and scores (n_centers,) scratch."""
    for p in range(found.size):
        for c in range(scores.size):
            scores[c] = half_norms[c]
        for channel in range(columns.shape[0]):
            for c in range(scores.size):
                scores[c] -= points[p, channel] * columns[channel, c]
        best = 0
        for c in range(1, scores.size):
            if scores[c] < scores[best]:
                best = c
        found[p] = best


@jit
def drain(level, ground, after, queue, is_waiting):  # type: ignore[no-untyped-def]
    """Lower the level of every pixel to that of its lowest neighbor, or to the ground, until nothing changes.

    `after` are the steps to the neighbors that come later, in rising order; pixels at the border are infinite. queue
    (n,) and is_waiting (n,), all False, are scratch. The order is that of Vincent, Morphological grayscale
    reconstruction in image analysis, IEEE Trans. Image Processing 1993, doi:10.1109/83.217222.
    """
    n, reach = level.size, after[-1]
    for p in range(reach, n - reach):
        for step in after:
            level[p] = min(level[p], level[p - step])
        level[p] = max(level[p], ground[p])
    first, n_waiting = 0, 0
    for p in range(n - reach - 1, reach - 1, -1):
        for step in after:
            level[p] = min(level[p], level[p + step])
        level[p] = max(level[p], ground[p])
        for step in after:
            if level[p + step] > max(level[p], ground[p + step]) and not is_waiting[p]:
                queue[n_waiting], is_waiting[p] = p, True
                n_waiting += 1
    while n_waiting > 0:
        p = queue[first]
        first, n_waiting, is_waiting[p] = (first + 1) % n, n_waiting - 1, False
        for direction in (-1, 1):
            for step in after:
                q = p + direction * step
                lower = max(level[p], ground[q])
                if level[q] > lower:
                    level[q] = lower
                    if not is_waiting[q]:
                        queue[(first + n_waiting) % n], is_waiting[q] = q, True
                        n_waiting += 1
