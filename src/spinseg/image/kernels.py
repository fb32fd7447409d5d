"""Compiled loops over pixels. Inputs are assumed valid; outputs and scratch arrays are passed in."""

import numpy as np

from spinseg._compiled import jit


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
def add_gradients_across_edges(dx, dy, stride, width, first, second, edge, direction, squared, out):  # type: ignore[no-untyped-def]
    """Add, for each pair of pixels across an edge, the larger of their two gradients in the edge's direction.

    A gradient is 1/2 sum over maps of |cos dx + sin dy|, or the root of the sum of squares if `squared`. One pixel of
    the maps covers `stride` x `stride` pixels of the image. If an edge's direction is (0, 0), each pair has its own.
    """
    n_maps = dx.shape[0]
    for p in range(edge.size):
        e = edge[p]
        c, s = direction[e, 0], direction[e, 1]
        if c == 0 and s == 0:
            if second[p] == first[p] + 1:
                c = np.float32(1)
            else:
                s = np.float32(1)
        largest = np.float32(0)
        for pixel in (first[p], second[p]):
            y, x = pixel // width // stride, pixel % width // stride
            total = np.float32(0)
            for m in range(n_maps):
                value = c * dx[m, y, x] + s * dy[m, y, x]
                total += value * value if squared else abs(value)
            largest = max(largest, np.sqrt(total) if squared else np.float32(0.5) * total)
        out[e] += largest


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
    reconstruction in image analysis, IEEE Trans. Image Processing 1993, :DOI:`10.1109/83.217222`.
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
