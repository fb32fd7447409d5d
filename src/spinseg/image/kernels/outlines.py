"""Compiled: move pixels at the outlines of sites so that outlines get shorter, and at those of classes where they fit.

Inputs are assumed valid; scratch arrays are passed in. `pairs` is a `SitePairs`, and `window` that of `window_around`.
"""

import cython

Index = cython.typedef(cython.Py_ssize_t)


@cython.final
@cython.cclass
class Outlines:
    """The sites whose outlines are to be shorter, pairs of them, the window around a pixel, and scratch space."""

    sites: cython.int[:, ::1]  # (height, width); -1 outside
    weight: cython.float[:, ::1]  # (height, width); how much the length of an outline counts
    is_free: cython.uchar[:, ::1]  # (height, width); whether a pixel may move
    start: cython.longlong[::1]  # (sites + 1,); the pairs of site a are other[start[a]..start[a+1]]
    other: cython.longlong[::1]  # (pairs,)
    separation: cython.double[::1]  # (pairs,)
    is_edge: cython.uchar[::1]  # (pairs,)
    n_contacts: cython.longlong[::1]  # (pairs,); of touching pixels
    dy: cython.longlong[::1]  # (window,)
    dx: cython.longlong[::1]  # (window,)
    nearness: cython.double[::1]  # (window,)
    found: cython.longlong[::1]  # (most sites in a window,); scratch
    total: cython.double[::1]  # (most sites in a window,); scratch

    def __init__(self, sites, weight, is_free, pairs, window, found, total):
        self.sites, self.weight, self.is_free = sites, weight, is_free
        self.start, self.other, self.separation = pairs.start, pairs.other, pairs.separation
        self.is_edge, self.n_contacts = pairs.is_edge, pairs.n_contacts
        self.dy, self.dx, self.nearness = window
        self.found, self.total = found, total


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def ring_y(r: Index) -> Index:
    """The row of the r-th of the eight pixels around one, in turn from above; every other one touches it."""
    return 0 if r == 2 or r == 6 else 1 if 3 <= r <= 5 else -1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def ring_x(r: Index) -> Index:
    """The column of that pixel."""
    return 0 if r == 0 or r == 4 else 1 if r < 4 else -1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def site_at(work: Outlines, y: Index, x: Index) -> Index:
    """Return the site of a pixel, and -1 beyond the edge of the image."""
    if y < 0 or y >= work.sites.shape[0] or x < 0 or x >= work.sites.shape[1]:
        return -1
    return work.sites[y, x]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def place_of(work: Outlines, a: Index, b: Index) -> Index:
    """Return the place of a pair of sites in the table, and -1 where it is not there."""
    for place in range(work.start[a], work.start[a + 1]):
        if work.other[place] == b:
            return place
    return -1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def stays_connected(work: Outlines, y: Index, x: Index) -> cython.bint:
    """Return whether a site holds together around a pixel of its own that leaves it."""
    site: Index = work.sites[y, x]
    first: Index = 0
    n_pieces: Index = 0
    touches: cython.bint = False
    for r in range(8):
        if site_at(work, y + ring_y(r), x + ring_x(r)) != site:
            first = r
    for i in range(1, 9):  # from a pixel of another site all the way around to it
        r = (first + i) % 8
        if site_at(work, y + ring_y(r), x + ring_x(r)) == site:
            touches |= r % 2 == 0
        else:
            n_pieces += touches
            touches = False
    return n_pieces == 1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def weigh_window(work: Outlines, y: Index, x: Index) -> Index:
    """Sum the weights of the pixels around one, for each of their sites; return how many sites there are."""
    n_found: Index = 0
    for o in range(work.dy.shape[0]):
        site = site_at(work, y + work.dy[o], x + work.dx[o])
        if site >= 0:
            k: Index = 0
            while k < n_found and work.found[k] != site:
                k += 1
            if k == n_found:
                if n_found == work.found.shape[0]:
                    continue
                work.found[k], work.total[k] = site, 0.0
                n_found += 1
            work.total[k] += work.nearness[o] * work.weight[y + work.dy[o], x + work.dx[o]]
    return n_found


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def expected_length(work: Outlines, site: Index, n_found: Index) -> cython.double:
    """Return the weighted length of outlines around a pixel of this site, as the draws have it on average."""
    length = 0.0
    for k in range(n_found):
        if work.found[k] != site:
            place = place_of(work, site, work.found[k])
            length += work.total[k] * (1.0 if place < 0 else work.separation[place])
    return length


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def n_touching(work: Outlines, y: Index, x: Index, site: Index) -> Index:
    """Return how many of the four pixels that touch one are of this site."""
    n: Index = 0
    for r in range(0, 8, 2):
        n += site_at(work, y + ring_y(r), x + ring_x(r)) == site
    return n


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def keeps_contacts(work: Outlines, y: Index, x: Index, new: Index) -> cython.bint:
    """Return whether those sites touch that touch in the graph, and no others, if a pixel gets this site."""
    old: Index = work.sites[y, x]
    for r in range(0, 8, 2):
        site = site_at(work, y + ring_y(r), x + ring_x(r))
        if site >= 0 and site != new:
            place = place_of(work, new, site)
            if place < 0 or not work.is_edge[place]:
                return False
        if site >= 0 and site != old:
            gained = n_touching(work, y, x, old) if site == new else 0
            if work.n_contacts[place_of(work, old, site)] + gained <= n_touching(work, y, x, site):
                return False
    return True


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def give(work: Outlines, y: Index, x: Index, new: Index) -> cython.void:
    """Give a pixel to a site, and update the numbers of contacts."""
    old: Index = work.sites[y, x]
    for r in range(0, 8, 2):
        site = site_at(work, y + ring_y(r), x + ring_x(r))
        if site >= 0 and site != old:
            work.n_contacts[place_of(work, old, site)] -= 1
            work.n_contacts[place_of(work, site, old)] -= 1
        if site >= 0 and site != new:
            work.n_contacts[place_of(work, new, site)] += 1
            work.n_contacts[place_of(work, site, new)] += 1
    work.sites[y, x] = new


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def best_site(work: Outlines, y: Index, x: Index) -> Index:
    """Return the site with which outlines around a pixel are shortest: its own, or one that may have the pixel."""
    own: Index = work.sites[y, x]
    best: Index = own
    n_found = weigh_window(work, y, x)
    least = expected_length(work, own, n_found) * (1 - 1e-6)
    for r in range(0, 8, 2):
        site = site_at(work, y + ring_y(r), x + ring_x(r))
        if site >= 0 and site != best and site != own:
            length = expected_length(work, site, n_found)
            if length < least and keeps_contacts(work, y, x, site):
                best, least = site, length
    return best


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def shorten_in_passes(
    work: Outlines,
    waiting: cython.longlong[:, ::1],
    is_waiting: cython.uchar[::1],
    n_waiting: Index,
    n_passes: Index,
) -> Index:
    """As `shorten`, for an `Outlines`."""
    n_moved: Index = 0
    width: Index = work.sites.shape[1]
    for t in range(n_passes):
        n_next: Index = 0
        for i in range(n_waiting):
            pixel: Index = waiting[t % 2, i if t % 2 == 0 else n_waiting - 1 - i]
            is_waiting[pixel] = 0
            y, x = pixel // width, pixel % width
            if work.sites[y, x] < 0 or not work.is_free[y, x] or not stays_connected(work, y, x):
                continue
            best = best_site(work, y, x)
            if best == work.sites[y, x]:
                continue
            give(work, y, x, best)
            n_moved += 1
            for r in range(8):
                if site_at(work, y + ring_y(r), x + ring_x(r)) >= 0:
                    other = pixel + ring_y(r) * width + ring_x(r)
                    if not is_waiting[other]:
                        is_waiting[other] = 1
                        waiting[(t + 1) % 2, n_next] = other
                        n_next += 1
        n_waiting = n_next
    return n_moved


def shorten(
    sites, weight, is_free, pairs, window, waiting, is_waiting, n_waiting: Index, n_passes: Index, found, total
):
    """Give pixels to the sites with which outlines are shortest, in passes over those that wait; return how many moved.

    `waiting`, of two rows, has the pixels of this pass and those of the next. A pixel that moves makes those around it
    wait, unless they do: `is_waiting` marks both those left in this pass and those of the next, so that none is twice
    in a row.
    """
    work = Outlines(sites, weight, is_free, pairs, window, found, total)
    rows: cython.longlong[:, ::1] = waiting
    marks: cython.uchar[::1] = is_waiting
    with cython.nogil:
        n_moved = shorten_in_passes(work, rows, marks, n_waiting, n_passes)
    return n_moved


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def count_class(
    sites: cython.int[::1], class_of: cython.int[::1], offsets: cython.longlong[::1], p: Index, one: Index
) -> Index:
    """Return how many of the pixels that touch one are of a class."""
    count: Index = 0
    for o in range(offsets.shape[0]):
        site = sites[p + offsets[o]]
        if site >= 0 and class_of[site] == one:
            count += 1
    return count


def move_pixels(
    sites: cython.int[::1],
    words: cython.int[::1],
    class_of: cython.int[::1],
    offsets: cython.longlong[::1],
    log_frequency: cython.double[:, ::1],
    coupling: cython.double,
    sizes: cython.longlong[::1],
):
    """Move each pixel in turn to the touching site whose class it fits best; return how many moved.

    A pixel gains the log frequency of its word in the class, and the coupling for each touching pixel of that class.
    `sites` and `words` are flat, with a border of sites -1; no site loses its last pixel.
    """
    n_moved: Index = 0
    with cython.nogil:
        for p in range(sites.shape[0]):
            site: Index = sites[p]
            if site < 0 or sizes[site] == 1:
                continue
            own, word = class_of[site], words[p]
            best_site_at: Index = site
            best: cython.double = log_frequency[own, word] + coupling * count_class(sites, class_of, offsets, p, own)
            for o in range(offsets.shape[0]):
                other: Index = sites[p + offsets[o]]
                if other >= 0 and class_of[other] != own:
                    one = class_of[other]
                    gain: cython.double = log_frequency[one, word]
                    gain += coupling * count_class(sites, class_of, offsets, p, one)
                    if gain > best:
                        best, best_site_at = gain, other
            if best_site_at != site:
                sites[p] = best_site_at
                sizes[site] -= 1
                sizes[best_site_at] += 1
                n_moved += 1
    return n_moved
