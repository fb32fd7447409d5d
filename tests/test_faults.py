"""Faults put into the sampler on purpose: a test of exactness that cannot fail is no test."""

import os
import types
from pathlib import Path

import pytest

import exact
import spinseg as ss
import zoo
from spinseg.inference import _kernels

SOURCE = Path(_kernels.__file__).read_text()

# What goes wrong: (the line as it is, the line with the fault). In the sweep, in splits and merges, in regroupings.
SWEEP_FAULTS = {
    "the bonds are not taken off the couplings": ("gain[j] - lam * weight[j]", "gain[j]"),
    "a new cluster may have a forbidden size": ("log_v[k_rest + 1] + log_w[group.size]", "log_v[k_rest + 1]"),
}
LOCAL_FAULTS = {
    "a local sweep goes where it cannot come back from": ("        return 0\n    new = ", "        n = n\n    new = "),
    "a local sweep forgets the size that it leaves": ("m = rest if slot == old else size[slot]", "m = size[slot]"),
}
SPLIT_FAULTS = {
    "the proposal of a split is not corrected": (
        "return slot, change, log_q + log_selection(k, m_a, m_b)",
        "return slot, change, log_selection(k, m_a, m_b)",
    ),
    "the proposal of a merge is not corrected": (
        "floor < log_q_of_merged(target, state, a, b, floor, inv_temperature, rng)",
        "True",
    ),
}
REGROUP_FAULTS = {
    "the way back of a regrouping is not corrected": (
        "accepted = floor < 0.0 and floor < log_q_of_groups(",
        "accepted = floor < 0.0 or floor < log_q_of_groups(",
    ),
    "a regrouping forgets couplings": (
        "change += beta[h] * (1.0 * (spin[u] == spin[j]) - 1.0 * (label[u] == label[j]))",
        "pass",
    ),
}
FAULTS = SWEEP_FAULTS | LOCAL_FAULTS | SPLIT_FAULTS | REGROUP_FAULTS


def broken(fault: str) -> types.ModuleType:
    """The kernels with one fault."""
    right, wrong = FAULTS[fault]
    assert SOURCE.count(right) == 1, right
    module = types.ModuleType("broken_kernels")
    module.__file__ = _kernels.__file__
    source = SOURCE.replace(right, wrong).replace('"cache": True', '"cache": False')
    exec(compile(source, "broken_kernels.py", "exec"), module.__dict__)
    return module


FEW = [next(iter(faults)) for faults in (SWEEP_FAULTS, SPLIT_FAULTS)]


@pytest.mark.parametrize("fault", FAULTS)
def test_the_fault_is_caught(fault):
    if fault not in FEW and not os.environ.get("SPINSEG_ALL_FAULTS"):
        pytest.skip("compiling takes long: two faults are tried unless SPINSEG_ALL_FAULTS is set")
    graph, kept = exact.graph(6)
    prior = ss.PitmanYor(0.8, 0.4, min_size=2) if "forbidden" in fault else ss.PitmanYor(0.8, 0.4)
    model = ss.Model(graph, zoo.likelihoods(6)["histogram"], prior, exact.MIXED[kept])
    lam = 3.0 if fault in SWEEP_FAULTS | LOCAL_FAULTS else "none"
    attempts = {"splits": 2 * (fault in SPLIT_FAULTS), "regroups": 3 * (fault in REGROUP_FAULTS)}
    attempts["local"] = float(fault in LOCAL_FAULTS)
    assert exact.iterated(model, lam, 200_000, 6, **attempts)[0] > 1e-4
    assert exact.iterated(model, lam, 200_000, 6, **attempts, kernels=broken(fault))[0] < 1e-6
