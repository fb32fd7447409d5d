"""How a sweep begins: bonds, and the spin-clusters that they join."""

import cython

from spinseg.sampler.kernels.state import (
    ANYWHERE,
    CONNECTED,
    LAM,
    N_SPIN_CLUSTERS,
    NEXT_INDEX,
    REACH,
    TOUCHING,
    Index,
    Plan,
    Random,
    Real,
    State,
    Target,
)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def root(parent: cython.uint[::1], i: Index) -> Index:
    """The root of site i, halving the path to it."""
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def draw_bonds(
    target: Target, parent: cython.uint[::1], label: cython.uint[::1], lam: Real, rng: Random
) -> cython.void:
    """Bond neighbors of one cluster with probability 1 - exp(-lambda strength); the result is a forest in `parent`.

    The edges are consecutive intervals of length lambda * strength. A unit Poisson process hits each with that
    probability: an exponential gap leads to the next bond, and a new one starts at the end of its interval. The parent
    of a site never has a larger number than the site.
    """
    for i in range(parent.shape[0]):
        parent[i] = i
    if lam == 0.0:
        return
    gap = rng.standard_exponential()
    for i in range(parent.shape[0]):
        for h in range(target.upper[i], target.start[i + 1]):
            if gap >= lam * target.strength[h]:
                gap -= lam * target.strength[h]
                continue
            gap = rng.standard_exponential()
            j = target.neighbor[h]
            if label[i] == label[j]:
                a, b = root(parent, i), root(parent, j)
                parent[max(a, b)] = min(a, b)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def list_spin_clusters(spin: cython.uint[::1], member: cython.uint[::1], first: cython.uint[::1]) -> Index:
    """Number the trees of `spin` as spin-clusters 0..p-1 by their first sites, and list their sites; returns p."""
    p = 0
    for i in range(spin.shape[0]):
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
    for i in range(spin.shape[0] - 1, -1, -1):
        first[spin[i]] -= 1
        member[first[spin[i]]] = i
    return p


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def draw_one(numbers: cython.double[::1], rng: Random) -> Real:
    """An entry of an array, drawn uniformly."""
    return numbers[rng.below(numbers.shape[0]) if numbers.shape[0] > 1 else 0]


@cython.ccall
@cython.nogil
@cython.exceptval(check=False)
def begin_sweep(target: Target, state: State, plan: Plan, rng: Random) -> cython.void:
    """Draw whether the sweep is local, its lambda, and its bonds; list the spin-clusters."""
    far: cython.bint = not plan.connected and (plan.local == 0.0 or rng.random() >= plan.local)
    state.counters[REACH] = CONNECTED if plan.connected else ANYWHERE if far else TOUCHING
    lam = draw_one(plan.global_lams, rng) if far and plan.local > 0.0 else draw_one(plan.lams, rng)
    state.scalars[LAM] = lam
    draw_bonds(target, state.spin, state.label, lam, rng)
    state.counters[N_SPIN_CLUSTERS] = list_spin_clusters(state.spin, state.member, state.first)
    state.counters[NEXT_INDEX] = 0
