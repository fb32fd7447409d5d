"""Whether clusters stay connected, and what lies between two of them: searches that end as early as they can."""

from spinseg._compiled import internal


@internal
def set_root(place, i):
    """The first site of the set that a search has found site i in, halving the path to it."""
    while place[i] != i + 1:
        place[i] = place[place[i] - 1]
        i = place[i] - 1
    return i


@internal
def leaves_connected(start, neighbor, label, own, spin, c, group, queue, place, pending):
    """Whether the cluster of label `own` is connected, or empty, without the sites `group`, which have spin c.

    A search spreads from all neighbors of the group at once, inside what would be left, and joins the sets of sites
    found from each where they meet. It ends when one set is left, or when one has nowhere to go, so that its length is
    that of a short way around, or of the smallest piece that would be cut off. The last three arrays are scratch, and
    `place` is zero before and after.
    """
    n_found, n_sets = 0, 0
    for q in range(group.size):
        for h in range(start[group[q]], start[group[q] + 1]):
            j = neighbor[h]
            if label[j] == own and spin[j] != c and place[j] == 0:
                place[j], pending[j], queue[n_found] = j + 1, 1, j
                n_found += 1
                n_sets += 1
    at, is_cut = 0, False
    while n_sets > 1 and not is_cut:
        i = queue[at]
        at += 1
        for h in range(start[i], start[i + 1]):
            j = neighbor[h]
            if label[j] != own or spin[j] == c:
                continue
            mine = set_root(place, i)
            if place[j] == 0:
                place[j], queue[n_found] = mine + 1, j
                n_found += 1
                pending[mine] += 1
                continue
            other = set_root(place, j)
            if other != mine:
                place[other] = mine + 1
                pending[mine] += pending[other]
                n_sets -= 1
        mine = set_root(place, i)
        pending[mine] -= 1
        is_cut = n_sets > 1 and pending[mine] == 0
    for q in range(n_found):
        place[queue[q]] = 0
    return not is_cut


@internal
def couplings_between(target, state, i, j):
    """The summed couplings between the clusters of sites i and j, by a search through that of i."""
    start, neighbor, beta, label, queue, place = (
        target.start,
        target.neighbor,
        target.beta,
        state.label,
        state.queue,
        state.place,
    )
    own, other, between, n_found, at = label[i], label[j], 0.0, 1, 0
    queue[0], place[i] = i, 1
    while at < n_found:
        u = queue[at]
        at += 1
        for h in range(start[u], start[u + 1]):
            v = neighbor[h]
            between += beta[h] * (label[v] == other)
            if label[v] == own and place[v] == 0:
                queue[n_found], place[v] = v, 1
                n_found += 1
    for q in range(n_found):
        place[queue[q]] = 0
    return between
