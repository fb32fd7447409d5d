"""Compiled: move pixels at the outlines of sites so that outlines get shorter, and at those of classes where they fit.

Inputs are assumed valid; scratch arrays are passed in. `pairs` is a `SitePairs`, and `window` that of `window_around`.
"""

from spinseg._compiled import internal, jit

RING_Y = (-1, -1, 0, 1, 1, 1, 0, -1)  # the eight pixels around one, in turn; every other one touches it
RING_X = (0, 1, 1, 1, 0, -1, -1, -1)


@internal
def site_at(sites, y, x):  # type: ignore[no-untyped-def]
    """Return the site of a pixel, and -1 beyond the edge of the image."""
    return sites[y, x] if 0 <= y < sites.shape[0] and 0 <= x < sites.shape[1] else -1


@internal
def place_of(pairs, a, b):  # type: ignore[no-untyped-def]
    """Return the place of a pair of sites in the table, and -1 where it is not there."""
    for place in range(pairs.start[a], pairs.start[a + 1]):
        if pairs.other[place] == b:
            return place
    return -1


@internal
def stays_connected(sites, y, x):  # type: ignore[no-untyped-def]
    """Return whether a site holds together around a pixel of its own that leaves it."""
    site, first, n_pieces, touches = sites[y, x], 0, 0, False
    for r in range(8):
        if site_at(sites, y + RING_Y[r], x + RING_X[r]) != site:
            first = r
    for i in range(1, 9):  # from a pixel of another site all the way around to it
        r = (first + i) % 8
        if site_at(sites, y + RING_Y[r], x + RING_X[r]) == site:
            touches |= r % 2 == 0
        else:
            n_pieces += touches
            touches = False
    return n_pieces == 1


@internal
def weigh_window(sites, weight, window, y, x, found, total):  # type: ignore[no-untyped-def]
    """Sum the weights of the pixels around one, for each of their sites; return how many sites there are."""
    dy, dx, nearness = window
    n_found = 0
    for o in range(dy.size):
        site = site_at(sites, y + dy[o], x + dx[o])
        if site >= 0:
            k = 0
            while k < n_found and found[k] != site:
                k += 1
            if k == n_found:
                if n_found == found.size:
                    continue
                found[k], total[k] = site, 0.0
                n_found += 1
            total[k] += nearness[o] * weight[y + dy[o], x + dx[o]]
    return n_found


@internal
def expected_length(pairs, site, found, total, n_found):  # type: ignore[no-untyped-def]
    """Return the weighted length of outlines around a pixel of this site, as the draws have it on average."""
    length = 0.0
    for k in range(n_found):
        if found[k] != site:
            place = place_of(pairs, site, found[k])
            length += total[k] * (1.0 if place < 0 else pairs.separation[place])
    return length


@internal
def n_touching(sites, y, x, site):  # type: ignore[no-untyped-def]
    """Return how many of the four pixels that touch one are of this site."""
    n = 0
    for r in range(0, 8, 2):
        n += site_at(sites, y + RING_Y[r], x + RING_X[r]) == site
    return n


@internal
def keeps_contacts(sites, pairs, y, x, new):  # type: ignore[no-untyped-def]
    """Return whether those sites touch that touch in the graph, and no others, if a pixel gets this site."""
    old = sites[y, x]
    for r in range(0, 8, 2):
        site = site_at(sites, y + RING_Y[r], x + RING_X[r])
        if site >= 0 and site != new:
            place = place_of(pairs, new, site)
            if place < 0 or not pairs.is_edge[place]:
                return False
        if site >= 0 and site != old:
            gained = n_touching(sites, y, x, old) if site == new else 0
            if pairs.n_contacts[place_of(pairs, old, site)] + gained <= n_touching(sites, y, x, site):
                return False
    return True


@internal
def give(sites, pairs, y, x, new):  # type: ignore[no-untyped-def]
    """Give a pixel to a site, and update the numbers of contacts."""
    old = sites[y, x]
    for r in range(0, 8, 2):
        site = site_at(sites, y + RING_Y[r], x + RING_X[r])
        if site >= 0 and site != old:
            pairs.n_contacts[place_of(pairs, old, site)] -= 1
            pairs.n_contacts[place_of(pairs, site, old)] -= 1
        if site >= 0 and site != new:
            pairs.n_contacts[place_of(pairs, new, site)] += 1
            pairs.n_contacts[place_of(pairs, site, new)] += 1
    sites[y, x] = new


@internal
def best_site(sites, weight, pairs, window, y, x, found, total):  # type: ignore[no-untyped-def]
    """Return the site with which outlines around a pixel are shortest: its own, or one that may have the pixel."""
    own, best = sites[y, x], sites[y, x]
    n_found = weigh_window(sites, weight, window, y, x, found, total)
    least = expected_length(pairs, own, found, total, n_found) * (1 - 1e-6)
    for r in range(0, 8, 2):
        site = site_at(sites, y + RING_Y[r], x + RING_X[r])
        if site >= 0 and site != best and site != own:
            length = expected_length(pairs, site, found, total, n_found)
            if length < least and keeps_contacts(sites, pairs, y, x, site):
                best, least = site, length
    return best


@jit
def shorten(sites, weight, is_free, pairs, window, waiting, is_waiting, n_waiting, n_passes, found, total):  # type: ignore[no-untyped-def]
    """Give pixels to the sites with which outlines are shortest, in passes over those that wait; return how many moved.

    `waiting`, of two rows, has the pixels of this pass and those of the next. A pixel that moves makes those around it
    wait, unless they do: `is_waiting` marks both those left in this pass and those of the next, so that none is twice
    in a row.
    """
    width, n_moved = sites.shape[1], 0
    for t in range(n_passes):
        n_next = 0
        for i in range(n_waiting):
            pixel = waiting[t % 2, i if t % 2 == 0 else n_waiting - 1 - i]
            is_waiting[pixel] = False
            y, x = pixel // width, pixel % width
            if sites[y, x] < 0 or not is_free[y, x] or not stays_connected(sites, y, x):
                continue
            best = best_site(sites, weight, pairs, window, y, x, found, total)
            if best == sites[y, x]:
                continue
            give(sites, pairs, y, x, best)
            n_moved += 1
            for r in range(8):
                if site_at(sites, y + RING_Y[r], x + RING_X[r]) >= 0:
                    other = pixel + RING_Y[r] * width + RING_X[r]
                    if not is_waiting[other]:
                        is_waiting[other] = True
                        waiting[(t + 1) % 2, n_next] = other
                        n_next += 1
        n_waiting = n_next
    return n_moved


@internal
def count_class(sites, class_of, offsets, p, one):  # type: ignore[no-untyped-def]
    """Return how many of the pixels that touch one are of a class."""
    count = 0
    for offset in offsets:
        site = sites[p + offset]
        if site >= 0 and class_of[site] == one:
            count += 1
    return count


@jit
def move_pixels(sites, words, class_of, offsets, log_frequency, coupling, sizes):  # type: ignore[no-untyped-def]
    """Move each pixel in turn to the touching site whose class it fits best; return how many moved.

    A pixel gains the log frequency of its word in the class, and the coupling for each touching pixel of that class.
    `sites` and `words` are flat, with a border of sites -1; no site loses its last pixel.
    """
    n_moved = 0
    for p in range(sites.size):
        site = sites[p]
        if site < 0 or sizes[site] == 1:
            continue
        own, word, best_site = class_of[site], words[p], site
        best = log_frequency[own, word] + coupling * count_class(sites, class_of, offsets, p, own)
        for offset in offsets:
            other = sites[p + offset]
            if other >= 0 and class_of[other] != own:
                one = class_of[other]
                gain = log_frequency[one, word] + coupling * count_class(sites, class_of, offsets, p, one)
                if gain > best:
                    best, best_site = gain, other
        if best_site != site:
            sites[p] = best_site
            sizes[site] -= 1
            sizes[best_site] += 1
            n_moved += 1
    return n_moved
