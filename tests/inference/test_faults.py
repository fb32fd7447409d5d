"""Faults put into the sampler on purpose: a test of exactness that cannot fail is no test."""

import re
import types
from pathlib import Path

import numpy as np
import pytest

import exact
import model_cases
import spinseg as ss
from effort import effort
from spinseg._bundle import Bundle
from spinseg.inference import kernels

# The compiled code as one text, in which each file imports from those before it.
FILES = ("state", "likelihood", "clusters", "size_prior", "sweep", "split_merge", "regroup", "iterations")
IMPORTS = re.compile(r"^from spinseg\S* import (\([^)]*\)|.*)$", re.MULTILINE)
FOLDER = Path(kernels.__path__[0])
SOURCE = IMPORTS.sub("", "\n".join((FOLDER / f"{name}.py").read_text() for name in FILES))

# Fault: (the code as it is, the code with the fault).
SWEEP_FAULTS = {
    "the bonds are not taken off the couplings": ("log_weight[j] - lam * weight[j]", "log_weight[j]"),
    "a new cluster may have a forbidden size": ("log_v[k_rest + 1] + log_w[group.size]", "log_v[k_rest + 1]"),
}
LOCAL_FAULTS = {
    "a local sweep makes a move that cannot be reversed": ("        return 0\n    new = ", "        n = n\n    new = "),
    "a local sweep forgets the size that it leaves": ("m = rest if slot == old else size[slot]", "m = size[slot]"),
}
SPLIT_FAULTS = {
    "the proposal of a split is not corrected": (
        "return slot, change, log_q + log_selection(k, m_a, m_b)",
        "return slot, change, log_selection(k, m_a, m_b)",
    ),
    "the proposal of a merge is not corrected": (
        "floor < log_q_reverse_split(target, state, a, b, floor, inv_temperature, rng)",
        "True",
    ),
    "a split forgets the number of clusters": (" + log_v[k + 1] - log_v[k]\n    for q", "\n    for q"),
    "a merge forgets couplings": ("change += beta[h] * (label[neighbor[h]] == label_b)", "pass"),
    "the choice of clusters is not corrected": ("math.log(k_merged + 1.0) + ", ""),
}
REGROUP_FAULTS = {
    "the reverse proposal of a regrouping is left out": (
        "accepted = floor < 0.0 and floor < log_q_reverse_regroup(",
        "accepted = floor < 0.0 or floor < log_q_reverse_regroup(",
    ),
    "a regrouping forgets couplings": (
        "change += beta[h] * (1.0 * (spin[u] == spin[j]) - 1.0 * (label[u] == label[j]))",
        "pass",
    ),
    "a regrouping forgets sizes": (
        "change += slot_log_marginal(state, k + s) + log_w[size[k + s]]",
        "change += slot_log_marginal(state, k + s)",
    ),
}
N_DRAWS = {True: 600, False: 4_000}  # of sweeps, and of other moves, where faults show less


def replaced(source: str, right: str, wrong: str) -> str:
    """The source with one line changed, which must be there once."""
    assert source.count(right) == 1, right
    return source.replace(right, wrong)


def interpreted(source: str):
    """`exact.iterate_each` over kernels of this source, uncompiled: compiling them anew would take longer."""
    module = types.ModuleType("interpreted_kernels")
    module.__dict__.update(dict.fromkeys(("inlined", "internal", "jit"), lambda function: function), Bundle=Bundle)
    exec(compile(source, "interpreted_kernels.py", "exec"), module.__dict__)
    return types.FunctionType(exact.iterate_each.__code__, module.__dict__)


def p_value(iterate, faults, counters, limits):
    """Of one iteration that uses what the faults are in."""
    graph, kept = exact.graph(5)
    prior = ss.PitmanYor(0.8, 0.4, **limits)
    model = ss.Model(graph, model_cases.likelihoods(5)["histogram"], prior, exact.MIXED[kept])
    lam = 3.0 if faults in (SWEEP_FAULTS, LOCAL_FAULTS) else "none"
    attempts = {"splits": 12 * (faults is SPLIT_FAULTS), "regroups": 6 * (faults is REGROUP_FAULTS)}
    attempts["local"] = float(faults is LOCAL_FAULTS)
    try:
        return exact.iterated(
            model, lam, N_DRAWS[faults in (SWEEP_FAULTS, LOCAL_FAULTS)], counters, **attempts, iterate=iterate
        )[0]
    except IndexError:  # a fault may read outside the tables
        return 0.0


ALL = [SWEEP_FAULTS, LOCAL_FAULTS, SPLIT_FAULTS, REGROUP_FAULTS]


def tried(number):
    """A fault of each kind of move; in the exhaustive tests all of them."""
    return [(faults, fault) for faults in ALL for fault in list(faults)[:number]]


@pytest.mark.parametrize(("faults", "fault"), tried(effort(1, None)))
def test_the_fault_is_caught(faults, fault):
    limits = {"min_size": 2} if "forbidden" in fault else {}
    assert p_value(interpreted(replaced(SOURCE, *faults[fault])), faults, 6, limits) < 1e-6


@pytest.mark.parametrize("local", [0.0, 0.8])
def test_compiled_equals_interpreted(local):
    """So that a fault is one of the compiled code, too. Every draw is the same, with all moves at once."""
    graph, kept = exact.graph(5)
    model = ss.Model(graph, model_cases.likelihoods(5)["product"], ss.PitmanYor(0.8, 0.4), exact.MIXED[kept])
    how = {"splits": 3, "regroups": 3, "local": local}
    plain, compiled = (
        exact.iterated(model, 3.0, 400, 8, **how, iterate=iterate)[1]
        for iterate in (interpreted(SOURCE), exact.compiled_iterate_each)
    )
    np.testing.assert_array_equal(plain, compiled)
