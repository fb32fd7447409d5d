"""Faults put into the sampler on purpose: a test of exactness that cannot fail is no test."""

import types
from pathlib import Path

import pytest

import exact
import spinseg as ss
import zoo
from spinseg.inference import _kernels

SOURCE = Path(_kernels.__file__).read_text()

# What goes wrong: (the line as it is, the line with the fault).
FAULTS = {
    "the bonds are not taken off the couplings": ("state.gain[j] - lam * weight[j]", "state.gain[j]"),
    "log_v is left out": ("gain[new] + log_v[k_rest + 1] + log_w", "gain[new] + log_v[k_rest] + log_w"),
    "the size of the spin-cluster is ignored": ("log_w[np.uint64(m + group.size)]", "log_w[np.uint64(m + 1)]"),
    "its own cluster is weighed as if it had not left": ("count[d, old] - state.pool_count[t])", "count[d, old])"),
    "edges inside the spin-cluster count": ("outside = state.spin[j] != spin", "outside = True"),
    "a bond is too likely": ("gap >= lam * target.strength[h]", "gap >= 2.0 * lam * target.strength[h]"),
    "bonds join different clusters": ("if label[i] == label[j]:", "if True:"),
    "a new cluster may have a forbidden size": ("log_v[k_rest + 1] + log_w[group.size]", "log_v[k_rest + 1]"),
    "a pooled count is lost": (
        "for q in range(group.size):\n            for e in",
        "for q in range(1):\n            for e in",
    ),
    "a moved slot keeps its old id": ("state.id_of[slot], state.id_of[last] = moved, gone", "pass"),
}


def broken(fault: str) -> types.ModuleType:
    """The kernels with one fault."""
    right, wrong = FAULTS[fault]
    assert SOURCE.count(right) == 1, right
    module = types.ModuleType("broken_kernels")
    module.__file__ = _kernels.__file__
    source = SOURCE.replace(right, wrong).replace('"cache": True', '"cache": False')
    exec(compile(source, "broken_kernels.py", "exec"), module.__dict__)
    return module


@pytest.mark.parametrize("fault", FAULTS)
def test_the_fault_is_caught(fault):
    graph, kept = exact.graph(6)
    prior = ss.PitmanYor(0.8, 0.4, min_size=2) if "forbidden" in fault else ss.PitmanYor(0.8, 0.4)
    model = ss.Model(graph, zoo.likelihoods(6)["histogram"], prior, exact.MIXED[kept])
    assert exact.swept(model, 3.0, 200_000, 6)[0] > 1e-4
    assert exact.swept(model, 3.0, 200_000, 6, kernels=broken(fault))[0] < 1e-6
