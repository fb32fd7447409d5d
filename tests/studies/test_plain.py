"""What the studies compare with must be right too."""

import numpy as np

import exact
import model_cases
import spinseg as ss
from effort import exhaustive
from studies.speed import plain


@exhaustive
def test_the_plain_numpy_sweep_leaves_the_posterior_invariant():
    graph, kept = exact.graph(5)
    model = ss.Model(graph, model_cases.likelihoods(5)["histogram"], ss.DirichletProcess(1.3), exact.POSITIVE[kept])
    rng = np.random.default_rng(0)
    probabilities = np.exp(exact.log_probabilities(model))
    rows = exact.partitions(5)
    starts = rows[rng.choice(len(rows), 3000, p=probabilities)]
    swept = [plain.sweep(model, start, 3.0, rng) for start in starts]
    first_seen = np.array([[z.tolist().index(label) for label in z] for z in swept])
    numbered = np.array([np.unique(row, return_inverse=True)[1] for row in first_seen])
    assert exact.p_value(exact.frequencies(numbered), probabilities) > 1e-4
