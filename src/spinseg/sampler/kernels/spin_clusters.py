"""Bonds, and the spin-clusters that they join."""

from spinseg._compiled import internal


@internal
def root(parent, i):
    """The root of site i, halving the path to it."""
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@internal
def draw_bonds(target, parent, label, lam, rng):
    """Bond neighbours of one cluster with probability 1 - exp(-lambda strength); the result is a forest in `parent`.

    Think of the edges as consecutive intervals of length lambda * strength. A unit Poisson process hits an interval
    with just that probability, independently of the others, so that one exponential gap leads to the next bond, after
    which a new gap starts at the end of the interval. The parent of a site never has a larger number than the site.
    """
    start, upper, neighbor, strength = target.start, target.upper, target.neighbor, target.strength
    for i in range(parent.size):
        parent[i] = i
    if lam == 0.0:
        return
    gap = rng.standard_exponential()
    for i in range(parent.size):
        for h in range(upper[i], start[i + 1]):
            if gap >= lam * strength[h]:
                gap -= lam * strength[h]
                continue
            gap = rng.standard_exponential()
            j = neighbor[h]
            if label[i] == label[j]:
                a, b = root(parent, i), root(parent, j)
                parent[max(a, b)] = min(a, b)


@internal
def list_spin_clusters(spin, member, first):
    """Number the trees of `spin` as spin-clusters 0..p-1 by their first sites, and list their sites; returns p."""
    p = 0
    for i in range(spin.size):
        if spin[i] == i:
            spin[i] = p
            first[p] = 0
            p += 1
        else:
            spin[i] = spin[spin[i]]  # the parent comes before, so it has its number already
        first[spin[i]] += 1
    end = 0
    for c in range(p):
        end += first[c]
        first[c] = end
    first[p] = end
    for i in range(spin.size - 1, -1, -1):
        first[spin[i]] -= 1
        member[first[spin[i]]] = i
    return p
