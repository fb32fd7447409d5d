"""Faults put into the sampler on purpose: a test of exactness that cannot fail is no test."""

import math
import types

import numpy as np
import pytest

import exact
import model_cases
import spinseg as ss
from effort import effort
from kernel_source import names_of, replaced, source_of
from spinseg.sampler.kernels.moves import MOVES

SOURCE = source_of("from spinseg.sampler.kernels.moves import run_iterations")

# Fault: (the code as it is, the code with the fault).
SWEEP_FAULTS = {
    "the bonds are not taken off the couplings": ("log_weight[j] - lam * state.bond_weight[j]", "log_weight[j]"),
    "a new cluster may have a forbidden size": (
        "+ target.log_v[k_rest + 1] + target.log_w[n_members]\n    state.size",
        "+ target.log_v[k_rest + 1]\n    state.size",
    ),
}
LOCAL_FAULTS = {
    "a local sweep makes a move that cannot be reversed": (
        "        return 0\n    if has_kinds(",
        "        n = n\n    if has_kinds(",
    ),
    "a local sweep forgets the size that it leaves": (
        "rest if slot == old else state.size[slot]\n        sign",
        "state.size[slot]\n        sign",
    ),
}
SPLIT_FAULTS = {
    "the proposal of a split is not corrected": ("log_ratio = log_q + log_selection", "log_ratio = log_selection"),
    "the proposal of a merge is not corrected": (
        "floor < log_q_of_present(target, state, m, 2, k, floor, inv_temperature, rng)",
        "True",
    ),
    "a split forgets the number of clusters": ("target.log_v[k - n_old + n_new] - target.log_v[k] + ", ""),
    "a merge forgets couplings": (" + couplings_between_slots(target, state, a, b)", ""),
    "the choice of clusters is not corrected": ("math.log(k_merged + 1.0) + ", ""),
}
REGROUP_FAULTS = {
    "the reverse proposal of a regrouping is left out": (
        "accepted = floor < log_q_of_present(target, state, n_sites, n_old, behind",
        "accepted = True or (target, state, n_sites, n_old, behind",
    ),
    "a regrouping forgets couplings": (
        "change += target.beta[h] * joined",
        "pass",
    ),
    "a regrouping forgets sizes": ("change += target.log_w[state.size[k + s]] + ", "change += "),
}
CONNECTED_SWEEP_FAULTS = {
    "a cluster may be cut in two": ("or may_leave(target, state, c))", "or True)"),
    "the search ends too early": ("while n_sets > 1 and not is_cut:", "while n_sets > 1 and at < 1 and not is_cut:"),
    "sets that meet are not joined": (
        "                n_sets -= 1\n        mine",
        "                n_sets -= 0\n        mine",
    ),
    "a site inside a cluster never founds one": (
        "if reach != ANYWHERE and target.log_w[n_members] == -INF and not",
        "if reach != ANYWHERE and not",
    ),
}
GROWTH_FAULTS = {
    "the proposal of a split is not corrected": ("log_ratio = log_q_old - log_q\n", "log_ratio = log_q_old\n"),
    "the reverse proposal of a border is left out": ("log_ratio = log_q_old - log_q\n", "log_ratio = -log_q\n"),
    "the proposal of a merge is not corrected": ("accepted = log_q > floor", "accepted = True"),
    "a merge forgets couplings": (" + couplings_between(target, state, i, j)", ""),
    "a split forgets couplings": ("+ cut_old - cut\n", "+ cut_old\n"),
    "a border forgets its old couplings": ("+ cut_old - cut\n", "- cut\n"),
    "a split forgets the number of clusters": ("target.log_v[k - n_old + n_new] - target.log_v[k] + ", ""),
    "sizes are forgotten": ("change += target.log_w[state.size[k + s]] + ", "change += "),
    "seeds are taken the wrong way round": (
        "side = 0 if state.label[u] == own else 1 if state.label[u] == other else 2",
        "side = 1 if state.label[u] == own else 0 if state.label[u] == other else 2",
    ),
    "the order depends on who belongs where": (
        "value = rng.standard_exponential() * target.delay[h]",
        "value = rng.standard_exponential() * target.delay[h] * (1.0 if state.label[u] == state.label[v] else 9.0)",
    ),
    "a side need not be reached": (
        "if state.sides[side, LOG_WEIGHT] < 0.0:\n                return",
        "if False:\n                return",
    ),
    "three clusters are never regrouped": (
        "if third in (i, j) or c in (a, b):",
        "if third in (i, j) or c in (a, b) or a != b:",
    ),
    "seeds are drawn by the partition": (
        "if i == j or (a == b and until_merge <= point < until_redraw):",
        "if i == j or (a == b and 0.25 <= point < until_redraw):",
    ),
}
# Seeds of the model are markers of the compiled code.
MARKER_FAULTS = {
    "clusters of two markers merge": ("n_marked(state.total, a) > 0.0 and n_marked", "False and n_marked"),
    "a part of a marker leaves": ("return n > 0.0 and n < target.marker_size[pooled_marker(state)]", "return False"),
    "a marker moves to another": ("if slot != old and n_marked(state.total, slot) > 0.0:", "if False:"),
    "a side takes two markers": ("if held != marker and (held > 0 or is_held):", "if held != marker and is_held:"),
    "a marker goes to two sides": ("if held != marker and (held > 0 or is_held):", "if held != marker and held > 0:"),
    "a marker founds a second side": (
        "if is_held if is_founder else n_possible == 0:",
        "if n_possible == 0 and q > 2:",
    ),
    "the reverse proposal forgets markers": (
        "if has_markers and n_pooled(state) > 0.0:",
        "if has_markers and forced == FREE and n_pooled(state) > 0.0:",
    ),
}
EXCHANGE_FAULTS = {
    "an exchange forgets one marginal": (" + change_of_marginal(target, state, b, j, i)\n    change", "\n    change"),
    "an exchange forgets one site's couplings": (" + change_of_couplings(target, state.label, j, i)\n", "\n"),
    "an exchange counts the coupling between its sites": (
        "        if target.neighbor[h] != j:\n",
        "        if True:\n",
    ),
    "an exchange ignores what enters": (
        "        state.pooled[target.bin[e]] += target.bin_count[e]\n    for side",
        "        pass\n    for side",
    ),
    "an exchange cuts clusters": ("if is_connected(target) and not stay_connected(target, state, i, j):", "if False:"),
    "an exchange looks at one cluster": (
        "for side in range(2):\n        gone,",
        "for side in range(1):\n        gone,",
    ),
    "an exchanged site may touch nothing": ("        if not touches:\n", "        if False:\n"),
    "a site leaves its marker": ("return target.marker_size[marker] == 1.0 and n_marked", "return n_marked"),
    "two markers meet": (
        "target.marker_size[marker] == 1.0 and n_marked(state.total, slot) == n_marked(target.statistic, j)",
        "target.marker_size[marker] == 1.0",
    ),
}


# Of what gives new regions their kinds, in the move that does nothing else. Its proposals are always accepted.
KIND_FAULTS = {
    "the draw of a kind is not corrected": ("log_ratio - log_share, change", "log_ratio, change"),
    "the prior of kinds is forgotten": (" + (log_prior_of_kinds(target, state.nested, k_new) - before)", ""),
}
KINDS_FAULTS = {
    "the proposal of a split is not corrected": ("inv_temperature * change - log_q\n", "inv_temperature * change\n"),
    "the proposal of a merge is not corrected": (
        "accepted: cython.bint = floor < log_q\n",
        "accepted: cython.bint = True\n",
    ),
    "a split forgets the number of kinds": (
        "        change += log_v_of_kinds(target, LOG_V, k, n_kinds + 1)\n",
        "        pass\n",
    ),
    "a merge forgets the number of kinds": (" + log_v_of_kinds(target, LOG_V, k, n_kinds - 1)\n", "\n"),
    "a split forgets sizes": ("            change += target.kind_table[LOG_W, state.nested.size[n_kinds + s]]\n", ""),
    "a merge forgets one likelihood": (" - slot_log_marginal(state.nested, b)\n", "\n"),
    "regions go to the other side": ("[state.nested.member[q]] != own", "[state.nested.member[q]] == own"),
}
# Of regions and their kinds, in sweeps and where regions are split, merged and redrawn.
KIND_SWEEP_FAULTS = {
    "a new region is of its old kind": ("kind = there - first", "kind = own"),
    "a new region forgets the prior of kinds": (
        "with_one + log_v_of_kinds(target, LOG_V, k_rest + 1, n_left + (m == 0))",
        "with_one",
    ),
    "the number of regions is forgotten": (
        "with_one: Real = -target.kind_table[LOG_TOTAL, k_rest + 1]",
        "with_one = 0.0",
    ),
    "a new region has the prior of fewer regions": ("LOG_V, k_rest + 1, n_left", "LOG_V, k_rest, n_left"),
    "a kind keeps a region that is gone": ("state.nested.size[own] -= rest == 0", "state.nested.size[own] -= 0"),
    "the own kind counts the sites that leave": ("-1 if kind == own else 1)\n", "1)\n"),
    "sites leave their kind behind": ("update_slot(target, state.nested, own, 1 if leaves else 0, n_bins, -1)", "pass"),
}
KIND_GROWTH_FAULTS = {
    "the draw of the old kind is left out": ("log_ratio, change = log_q, -log_p", "log_ratio, change = 0.0, -log_p"),
    "the likelihood with a kind is forgotten": ("- log_share, change + log_likelihood", "- log_share, change"),
    "a rejected region keeps its new kind": ("    return_kinds(target, state, slots, n_old)\n", "    pass\n"),
    "regions forget the draw of kinds": ("log_ratio + log_ratio_of_kinds", "log_ratio"),
    "regions forget their kinds": ("change + change_of_kinds, log_ratio", "change, log_ratio"),
    "a merge forgets the draw of kinds": (
        "- inv_temperature * change - log_ratio\n",
        "- inv_temperature * change\n",
    ),
    "a merge forgets kinds": ("        change += change_of_kinds\n", "        pass\n"),
    "kinds share a region that is gone": (
        "        state.nested.rank[s] = state.nested.slot_of",
        "        state.nested.rank[s] = 0 * state.nested.slot_of",
    ),
    "an exchange forgets the other kind": (
        "            change += change_of_marginal(target, state.nested, kind_b, j, i)\n",
        "",
    ),
}


MOVE_FAULTS = {
    "split_or_merge": SPLIT_FAULTS,
    "regroup": REGROUP_FAULTS,
    "regrow": GROWTH_FAULTS,
    "exchange": EXCHANGE_FAULTS,
    "change_kind": KIND_FAULTS,
    "split_or_merge_kinds": KINDS_FAULTS,
}


OF_KINDS = (KIND_FAULTS, KINDS_FAULTS, KIND_SWEEP_FAULTS, KIND_GROWTH_FAULTS)


def interpreted(source: str):
    """`exact.iterate_each` over kernels of this source, uncompiled: to compile them would take longer."""
    names = names_of(source)
    names["start_kinds"] = types.FunctionType(exact.start_kinds.__code__, names)
    return types.FunctionType(exact.iterate_each.__code__, names)


def model_for(faults, fault):
    """A model in which this fault shows, since no other move makes up for it."""
    limits = {"min_size": 2} if "forbidden" in fault else {"min_size": 2, "max_size": 3} if "three" in fault else {}
    if faults is EXCHANGE_FAULTS:
        return model_for_exchange(fault)
    if faults in OF_KINDS:
        return model_of_kinds(fault)
    connected = faults in (CONNECTED_SWEEP_FAULTS, GROWTH_FAULTS, MARKER_FAULTS)
    if not connected:
        graph, kept = exact.graph(5)
        prior = ss.PitmanYor(0.8, 0.4, **limits)
        return ss.Model(graph, model_cases.likelihoods(5)["histogram"], prior, exact.MIXED[kept])
    graph, kept = exact.graph(6)
    beta = exact.MIXED[kept]
    if faults is CONNECTED_SWEEP_FAULTS:  # a cycle, in which ways around are long
        graph, beta = ss.SiteGraph(6, exact.EDGES[:6]), exact.POSITIVE[:6]
    prior, likelihood = ss.DirichletProcess(0.8, **limits), model_cases.likelihoods(6)["histogram"]
    if "border" in fault:
        prior, beta = ss.TabulatedPrior(lambda k: 0.0 if k == 2 else -math.inf, lambda m: 0.3 * m), 3 * beta
    if "three" in fault:
        prior, likelihood = ss.TabulatedPrior(lambda k: 0.0, lambda m: 0.0, **limits), ss.Flat()
    if "number of" in fault:
        prior, likelihood = FEW_REGIONS, ss.Flat()
    if "merge forgets couplings" in fault:
        likelihood, beta = ss.Flat(), 2 * beta
    if "reverse" in fault or "the order" in fault:  # where there is evidence, proposals follow it closely
        likelihood, beta = ss.Flat(), 0.0
    if faults is MARKER_FAULTS and "reverse" in fault:
        prior = ss.TabulatedPrior(lambda k: 0.0, lambda m: 0.0)
    seeds = [1, 0, 2, 0, 1, 0] if faults is MARKER_FAULTS else None
    return ss.Model(graph, likelihood, prior, beta, connected=True, seeds=seeds)


# Priors of few and of many clusters, in which numbers and sizes count.
FEW_REGIONS = ss.TabulatedPrior(lambda k: -1.5 * k, lambda m: 0.0)
FEW = ss.TabulatedPrior(lambda k: -1.5 * k, lambda m: -0.5 * m)
MANY = ss.TabulatedPrior(lambda k: 1.2 * k, lambda m: 0.7 * math.sqrt(m))


def model_of_kinds(fault):
    """A model of regions of kinds, in which this fault shows."""
    graph, kept = exact.graph(4 if "exchange" in fault else 5)
    limits = {"min_size": 2, "max_size": 2} if "exchange" in fault else {}
    likelihood = model_cases.likelihoods(graph.n_sites)["histogram"]
    prior = ss.TabulatedPrior(lambda k: 0.7 * k, lambda m: 0.0, **limits)
    kinds = MANY if "merge" in fault or "exchange" in fault else FEW
    kinds = ss.ParsimoniousProcess(1.0, cost=0.5) if "fewer regions" in fault else kinds
    return ss.Model(graph, likelihood, prior, exact.MIXED[kept], connected=True, kinds=kinds)


def model_for_exchange(fault):
    """A model whose clusters have no room, in which this fault of an exchange shows."""
    connected, marked = any(word in fault for word in ("clus", "touch")), "marker" in fault
    graph, kept = exact.graph(6)
    prior, seeds = ss.DirichletProcess(0.8, min_size=3, max_size=3), None
    if marked:
        seeds = [1, 0, 0, 0, 0, 1] if "leaves" in fault else [1, 2, 0, 0, 0, 0]
        prior = ss.DirichletProcess(0.8, min_size=2, max_size=2) if "meet" in fault else prior
    likelihood = model_cases.likelihoods(6)["histogram"]
    return ss.Model(graph, likelihood, prior, 2 * exact.MIXED[kept], connected=connected or marked, seeds=seeds)


def how_for(faults, fault):
    """What `exact.iterated` is to do: one iteration that uses what the faults are in."""
    subtle = any(word in fault for word in ("border", "three", "order", "forget"))
    if faults in (SWEEP_FAULTS, LOCAL_FAULTS):
        return {"lam": 3.0, "n_draws": 600, "local": float(faults is LOCAL_FAULTS)}
    if faults is CONNECTED_SWEEP_FAULTS:
        return {"lam": 1.0, "n_draws": 2_000}
    if faults is MARKER_FAULTS:  # most of these lead to what is impossible
        lam, n_draws = ("none", 2_000) if "reverse" in fault else (0.0, 400)
        return {"lam": lam, "n_draws": n_draws, "regrow": 24 if subtle else 6}
    if faults is KIND_SWEEP_FAULTS:
        return {"lam": 1.0, "n_draws": 2_000}
    if faults is KIND_GROWTH_FAULTS:
        moves = {"exchange": 6} if "exchange" in fault else {"regrow": 12}
        return {"lam": "none", "n_draws": 4_000, **moves}
    move = next(move for move in MOVE_FAULTS if MOVE_FAULTS[move] is faults)
    number = {"regroup": 6, "regrow": 24 if subtle else 6}.get(move, 12)
    return {"lam": "none", "n_draws": effort(2_500, 4_000), move: number}


def is_caught(iterate, faults, fault):
    """Whether one iteration with a fault differs from a right one: by few draws, if that is enough, or else by more."""
    model, how = model_for(faults, fault), how_for(faults, fault)
    for n_draws in (how["n_draws"] // 8, how["n_draws"] // 3, how["n_draws"]):
        try:
            p_value, _ = exact.iterated(model, seed=6, iterate=iterate, **how | {"n_draws": n_draws})
        except (IndexError, ValueError, OverflowError):  # a fault may read outside the tables, or take log(0)
            return True
        if p_value < 1e-6:
            return True
    return False


SWEEPS = [SWEEP_FAULTS, CONNECTED_SWEEP_FAULTS, KIND_SWEEP_FAULTS]
ALL = [*SWEEPS, LOCAL_FAULTS, MARKER_FAULTS, KIND_GROWTH_FAULTS, *MOVE_FAULTS.values()]
# A fault of a sweep, connected or not, or with kinds; in the exhaustive tests all faults of all moves.
TRIED = [(faults, fault) for faults in effort(SWEEPS, ALL) for fault in list(faults)[: effort(1, None)]]


def test_every_move_has_faults_and_every_fault_its_line():
    assert MOVE_FAULTS.keys() == MOVES.keys()
    for faults in ALL:
        for right, wrong in faults.values():
            assert replaced(SOURCE, right, wrong) != SOURCE


@pytest.mark.parametrize(("faults", "fault"), TRIED)
def test_the_fault_is_caught(faults, fault):
    assert is_caught(interpreted(replaced(SOURCE, *faults[fault])), faults, fault)


@pytest.mark.parametrize("where", ["anywhere", "touching", "connected", "with seeds", "with kinds"])
def test_compiled_equals_interpreted(where):
    """So that a fault is one of the compiled code, too. Every draw is the same, with all moves at once."""
    graph, kept = exact.graph(5)
    likelihood, prior = model_cases.likelihoods(5)["product"], ss.PitmanYor(0.8, 0.4)
    connected, seeds = where not in ("anywhere", "touching"), [1, 0, 0, 2, 1] if where == "with seeds" else None
    how = {"connected": connected, "seeds": seeds, "kinds": ss.Potts(3) if where == "with kinds" else None}
    model = ss.Model(graph, likelihood, prior, exact.MIXED[kept], power=0.7, **how)
    moves = exact.moves_of(connected=connected, kinds=where == "with kinds")
    how = {"local": 0.8 * (where == "touching"), **dict.fromkeys(moves, 4)}
    plain, compiled = (
        exact.iterated(model, 3.0, effort(100, 400), 8, **how, iterate=iterate)[1]
        for iterate in (interpreted(SOURCE), exact.iterate_each)
    )
    np.testing.assert_array_equal(plain, compiled)
