"""How a sweep begins: bonds, and the spin-clusters that they join."""

from spinseg._compiled import internal
from spinseg.sampler.kernels.state import ANYWHERE, CONNECTED, LAM, N_SPIN_CLUSTERS, NEXT_INDEX, REACH, TOUCHING


@internal
def root(parent, i):
    """The root of site i, halving the path to it."""
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@internal
def draw_bonds(target, parent, label, lam, rng):
    """Bond neighbors of one cluster with probability 1 - exp(-lambda strength); the result is a forest in `parent`.

    The edges are consecutive intervals of length lambda * strength. A unit Poisson process hits each with that
    probability: an exponential gap leads to the next bond, and a new one starts at the end of its interval. The parent
    of a site never has a larger number than the site.
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


@internal
def draw_one(numbers, rng):
    """An entry of an array, drawn uniformly."""
    return numbers[int(rng.random() * numbers.size) if numbers.size > 1 else 0]


@internal
def begin_sweep(target, state, plan, rng):
    """Draw whether the sweep is local, its lambda, and its bonds; list the spin-clusters."""
    counters, spin = state.counters, state.spin
    far = not plan.connected and (plan.local == 0.0 or rng.random() >= plan.local)
    counters[REACH] = CONNECTED if plan.connected else ANYWHERE if far else TOUCHING
    lam = draw_one(plan.global_lams, rng) if far and plan.local > 0.0 else draw_one(plan.lams, rng)
    state.scalars[LAM] = lam
    draw_bonds(target, spin, state.label, lam, rng)
    counters[N_SPIN_CLUSTERS] = list_spin_clusters(spin, state.member, state.first)
    counters[NEXT_INDEX] = 0
