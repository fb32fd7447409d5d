"""Compiled: give pixels at the outlines of classes to the class that they fit best."""

from spinseg._compiled import internal, jit


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
