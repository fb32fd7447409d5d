"""Compile what the tests need, side by side: each of their processes would compile it for itself.

`make` does so when it makes the environment, and the tests when they begin, for what has changed since.
"""

import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent

SAMPLER = """
import numpy as np, spinseg as ss, exact
graph, kept = exact.graph(5)
prior = ss.DirichletProcess(1.0)
for how in {}, {"connected": True}, {"connected": True, "kinds": prior}:  # a type of target each
    model = ss.Model(graph, ss.Flat(), prior, exact.MIXED[kept], **how)
    ss.sample(model, 2, 1, rng=0)
    exact.iterated(model, 1.0, 10, 0)
    ss.find_map(model, 1, sweeps=2, rng=0)
"""
THE_REST = """
import sys; sys.path[:0] = ["..", "studies", "image"]
import numpy as np, spinseg as ss, test_ddcrp, test_outlines
from spinseg.sampler.estimates import minimize_vi
from spinseg.segmentation.problem import prepare
case = test_ddcrp.GRAPHS["ring with a chord"], test_ddcrp.LIKELIHOODS["weight 0.7"]
test_ddcrp.p_after_one_sweep(*case, 1.0, 0.5, 10, 0)
test_ddcrp.sample_ddcrp(*case, 2, rng=0)
for graph in (None, case[0]):
    minimize_vi(np.array([[0, 0, 1, 1], [0, 1, 1, 0]], np.int32), graph=graph, rng=0)
prepare(np.arange(1200.0).reshape(20, 20, 3), ss.Photo())
test_outlines.shortened(np.arange(4, dtype=np.int32).repeat(9).reshape(6, 6), np.ones((6, 6)), np.eye(4, dtype=np.int32))
"""


def compile_all() -> None:
    """Compile in two processes; what was compiled before takes a few seconds."""
    both = [subprocess.Popen([sys.executable, "-c", script], cwd=TESTS) for script in (SAMPLER, THE_REST)]
    assert [process.wait() for process in both] == [0, 0]


if __name__ == "__main__":
    compile_all()
