"""Diagnostics: against ArviZ itself, and on chains made to agree, to disagree or to stand still."""

import re
import sys
from dataclasses import replace

import numpy as np
import pytest
from arviz_stats.base import array_stats
from scipy.stats import entropy as scipy_entropy

import spinseg as ss
from chain_cases import with_traces
from spinseg.partition.pairs import count_clusters, separation_probability
from spinseg.sampler.convergence import (
    agreement_of_draws,
    agreement_of_partitions,
    error_in_doubt,
    standard_errors,
    traces,
)
from spinseg.sampler.diagnostics import Diagnostics, diagnose

GRAPH = ss.SiteGraph(6, [[0, 1], [1, 2], [2, 3], [3, 4], [4, 5]])
MODEL = ss.Model(GRAPH, ss.PoissonGamma([1, 2, 2, 4, 5, 9]), ss.DirichletProcess(1.0), beta=0.3)
SAMPLED = ss.sample(MODEL, sweeps=400, chains=3, burn_in=45, thin=7, rng=0)


def made(log_posterior, n_clusters=None, labels=None, seconds=2.0, concentration=None):
    """Chains of these traces, every sweep a draw."""
    log_posterior = np.asarray(log_posterior, float)
    n_clusters = np.full(log_posterior.shape, 2, np.int32) if n_clusters is None else np.asarray(n_clusters, np.int32)
    labels = np.tile(np.array([0, 0, 1, 1, 1, 1], np.int32), (*log_posterior.shape, 1)) if labels is None else labels
    traces = {"log_posterior": log_posterior, "n_clusters": n_clusters}
    traces |= {} if concentration is None else {"concentration": concentration}
    return replace(with_traces(SAMPLED, labels, **traces), seconds=seconds)


def noise(chains=4, draws=500, seed=0):
    return np.random.default_rng(seed).normal(size=(chains, draws))


def test_quantities_equal_their_definitions():
    found = traces(SAMPLED, GRAPH)
    assert found["log_posterior"].shape == found["n_clusters"].shape == (3, 355)
    assert found["entropy"].shape == found["edge_agreement"].shape == SAMPLED.labels.shape[:2] == (3, 50)
    np.testing.assert_array_equal(found["log_posterior"], SAMPLED.trace("log_posterior")[:, 45:])
    np.testing.assert_array_equal(SAMPLED.log_posterior, found["log_posterior"][:, 6::7])
    for c, d in np.ndindex(3, 50):
        draw = SAMPLED.labels[c, d]
        assert found["entropy"][c, d] == pytest.approx(scipy_entropy(np.bincount(draw), base=2))
        assert found["edge_agreement"][c, d] == pytest.approx(1 - separation_probability(draw, GRAPH.edges).mean())
    assert "edge_agreement" not in SAMPLED.quantities()
    assert (SAMPLED.quantities(ss.SiteGraph(6, []))["edge_agreement"] == 1.0).all()


def test_equal_sizes_have_equal_entropies():
    labels = np.array([[[0, 1, 1, 2, 2, 2], [0, 0, 0, 1, 1, 2], [0, 0, 1, 2, 2, 2]]], np.int32)
    assert np.ptp(made(noise(1, 3), labels=labels).quantities()["entropy"]) == 0.0


@pytest.mark.parametrize("n_labels", [1, 90, 2**20])
def test_draws_that_are_looked_at_together_have_the_same_quantities(n_labels, monkeypatch):
    rng, graph = np.random.default_rng(5), ss.SiteGraph(30, [[i, i + 1] for i in range(29)])
    sizes = rng.permuted(np.repeat(np.arange(7), [2, 3, 3, 4, 5, 6, 7]))  # sums whose rounding depends on the order
    draws = [[rng.permutation(7)[sizes] for _ in range(9)] for _ in range(2)]
    draws[1][4] = np.arange(30)
    monkeypatch.setattr("spinseg.sampler.chains.BLOCK_LABELS", n_labels)
    found = made(noise(2, 9), labels=np.array(draws, np.int32)).quantities(graph)
    of_others = np.delete(found["entropy"].ravel(), 9 + 4)
    assert found["entropy"][1, 4] == pytest.approx(np.log2(30)) and np.ptp(of_others) == 0.0
    assert found["edge_agreement"][1, 4] == 0.0 and np.ptp(np.delete(found["edge_agreement"].ravel(), 13)) == 0.0


def test_the_table_equals_arviz():
    found = diagnose(SAMPLED, GRAPH)
    for name, raw in traces(SAMPLED, GRAPH).items():
        row = found.table[name]
        trace = np.round(raw / (1e-10 * max(np.abs(raw).max(), 1.0)))  # other units part values that tie once folded
        assert row.r_hat == pytest.approx(array_stats.rhat(trace, method="rank"))
        assert row.ess_bulk == pytest.approx(array_stats.ess(trace, method="bulk"))
        assert row.ess_tail == pytest.approx(array_stats.ess(trace, method="tail", prob=0.05))
        assert row.ess_per_second == pytest.approx(row.ess_bulk / SAMPLED.seconds)
        assert row.chain_means == pytest.approx(raw.mean(axis=1))
        assert row.sd == pytest.approx(raw.std())


def test_the_drift_of_a_running_sum_is_no_signal():
    trace = np.minimum(noise(), 0.5)  # many draws at the largest value, as at the mode of a small posterior
    drifting = trace + 1e-13 * np.arange(500)
    assert diagnose(made(drifting), GRAPH).table["log_posterior"].ess_tail == pytest.approx(
        array_stats.ess(trace, method="tail", prob=0.05)
    )
    assert array_stats.ess(drifting, method="tail", prob=0.05) < 100


def test_chains_that_have_not_converged():
    center = np.array([[9], [9], [14], [14]])
    found = diagnose(made(noise() + center / 2, np.random.default_rng(1).integers(-1, 2, (4, 500)) + center), GRAPH)
    assert found.converged is False
    assert found.verdict.startswith("The chains have not converged: R-hat of the number of clusters is ")
    reported = re.search(r"\(chain means ([0-9., ]+)\), and at most 1.05 is acceptable. Sample longer", found.verdict)
    assert [float(mean) for mean in reported[1].split(", ")] == pytest.approx(
        [9, 9, 14, 14], abs=0.3
    )  # 8 standard errors
    assert found.table["n_clusters"].r_hat > 1.5


def test_one_quantity_apart_is_enough():
    labels = np.tile(np.array([0, 0, 1, 1, 1, 1], np.int32), (2, 500, 1))
    labels[1] = [0, 1, 1, 1, 0, 1]  # as many clusters, of the same sizes
    found = diagnose(made(noise(2), labels=labels), GRAPH)
    assert found.converged is False
    assert "R-hat of the share of edges within clusters is infinite (chain means 0.800, 0.400)" in found.verdict
    assert found.agreement < 0.3 and found.standard_error == pytest.approx(0.5)
    assert found.table["edge_agreement"].r_hat == np.inf
    assert found.table["entropy"].r_hat == 1.0


def test_a_concentration_that_was_sampled_is_judged_as_well():
    alpha = np.exp(noise(2))
    assert diagnose(made(noise(2), concentration=alpha), GRAPH).converged is True
    found = diagnose(made(noise(2), concentration=alpha * np.array([[1], [9]])), GRAPH)
    row = found.table["concentration"]
    assert row.chain_means == pytest.approx((alpha[0].mean(), 9 * alpha[1].mean()))
    assert found.converged is False and found.r_hat == row.r_hat > 1.5
    assert found.verdict.startswith("The chains have not converged: R-hat of the concentration is ")
    printed = [line.split()[0] for line in str(found).splitlines()]
    assert printed == ["mean", "log_posterior", "n_clusters", "concentration", "entropy", "edge_agreement", "The"]


@pytest.mark.parametrize("drift", [0.0, 1e-12])
def test_chains_that_stand_still_apart_have_not_converged(drift):
    still = np.broadcast_to(np.array([[-100.1], [-100.1], [-250.3]]), (3, 40)) + drift * noise(3, 40)
    found = diagnose(made(still, concentration=still), GRAPH)
    assert found.converged is False and found.table["log_posterior"].r_hat == found.r_hat == np.inf
    assert "the concentration is infinite (chain means -100.10, -100.10, -250.30)" in found.verdict
    assert 0 < found.table["log_posterior"].ess_bulk < 10


def test_a_log_posterior_that_differs_is_shown_but_not_judged():
    """On many sites it differs for details that change neither the partition nor the probabilities."""
    found = diagnose(made(noise(2) + np.array([[0], [3]])), GRAPH)
    assert found.table["log_posterior"].r_hat > 1.5 and found.r_hat == 1.0 and found.agreement == 1.0
    assert found.converged is True and "R-hat of the log posterior is " in found.verdict


def test_a_jump_between_halves_is_not_convergence():
    jump = np.repeat([[1, 7], [1, 7]], 15, axis=1)
    found = diagnose(made(noise(2, 30), jump), GRAPH)
    assert found.converged is False and found.table["n_clusters"].r_hat == np.inf


@pytest.mark.parametrize("odd", [False, True])
def test_chains_that_stand_still_together_have_converged_with_a_warning(odd):
    still = np.full((2, 601), -1234.567) + 1e-12 * noise(2, 601)  # the drift of a running sum
    if odd:
        still[0, 300] = 0.0  # the middle draw, which is in neither half
    found = diagnose(made(still), GRAPH)
    assert found.converged is True
    assert found.verdict.startswith("Two chains have converged, but nothing in them ever varied")
    row = found.table["log_posterior"]
    assert (row.r_hat, row.ess_bulk, row.ess_tail, row.sd) == (1.0, 1202.0, 1202.0, 0.0)


def test_one_chain_has_nothing_to_compare_with():
    found = diagnose(made(noise(1)), GRAPH)
    assert found.converged is None and found.table["log_posterior"].r_hat is None
    assert found.verdict.startswith("One chain cannot show whether it has converged")
    assert found.agreement is None and found.standard_error is None
    assert found.table["log_posterior"].ess_bulk == pytest.approx(array_stats.ess(noise(1), method="bulk"))


@pytest.mark.parametrize("draws", [0, 1, 3])
def test_too_few_draws_are_said_to_be_too_few(draws):
    found = diagnose(made(noise(4, draws)), GRAPH)
    assert found.converged is None
    assert found.verdict.startswith(f"Too few draws to assess convergence: {draws} in each chain")


def test_chains_that_have_converged_with_many_or_few_effective_draws():
    found = diagnose(made(noise(), np.random.default_rng(1).integers(5, 9, (4, 500))), GRAPH)
    assert found.converged is True and "The smallest effective sample size, of bulk or tail, is" in found.verdict
    assert found.verdict.startswith("Four chains have converged: agreement is 1.00, and R-hat is at most 1.0")
    found = diagnose(made(np.tile(noise(1, 15, seed=4), (2, 2))), GRAPH)  # all halves alike, whatever the noise
    assert found.converged is True and "and at least 200 is advised. Sample longer." in found.verdict
    assert found.verdict.startswith("Two chains have converged so far")


def test_traces_are_judged_where_draws_are_too_few():
    chains = made(noise(2, 600), np.round(9 * noise(2, 600)) + np.array([[0], [90]]))
    found = diagnose(chains.with_draws(slice(2)), GRAPH)
    assert found.converged is False
    assert found.verdict.endswith(
        "too few draws, 2 in each chain, to judge the entropy of the cluster sizes and the share of edges within clusters."
    )


@pytest.mark.parametrize("chains", [1, 2, 4, 12])
@pytest.mark.parametrize("draws", [0, 1, 3, 4, 5, 6, 7, 50])
@pytest.mark.parametrize("kind", ["noise", "still", "apart", "two values"])
def test_no_nan_is_ever_shown(kind, chains, draws):
    trace = {
        "noise": noise(chains, draws),
        "still": np.zeros((chains, draws)),
        "apart": np.zeros((chains, draws)) + np.arange(chains)[:, None],
        "two values": (noise(chains, draws) > 0).astype(float),
    }[kind]
    found = diagnose(made(trace, seconds=0.0, concentration=trace), GRAPH)
    assert "nan" not in str(found) and "None" not in str(found) and len(found.verdict) > 20
    assert found.converged is not None or draws < 4 or chains == 1
    assert kind != "apart" or not found.converged


def two_modes(spread, n_draws=40, n_sites=60):
    """Draws of two chains around a partition of each, of which this share of the sites is redrawn in each draw."""
    rng = np.random.default_rng(0)
    modes = np.array([np.arange(n_sites) // 20, (np.arange(n_sites) + 7) // 20 % 3])[:, None]
    redrawn = rng.random((2, n_draws, n_sites)) < spread
    return np.where(redrawn, rng.integers(0, 3, redrawn.shape), modes).astype(np.int32)


@pytest.mark.parametrize("spread", [0.0, 0.1])
def test_agreement_is_adjusted_for_chance(spread):
    """Two modes on a ring, with as many clusters of the same sizes and as many boundaries: R-hat sees nothing."""
    labels, ring = two_modes(spread), ss.SiteGraph(60, [[i, (i + 1) % 60] for i in range(60)])
    assert 0 < agreement_of_draws(labels) < 0.75
    assert agreement_of_draws(labels[:1].repeat(2, axis=0)) == 1.0
    found = diagnose(made(noise(2, 40), labels=labels), ring)
    assert found.converged is False and "their agreement is 0." in found.verdict
    assert spread > 0 or found.r_hat == 1.0


def test_draws_of_a_wide_posterior_agree():
    """Independent draws from one distribution: those of different chains are as alike as those of the same chain."""
    labels = np.random.default_rng(0).integers(0, 3, (4, 60, 300)).astype(np.int32)
    assert agreement_of_draws(labels) > 0.99


def test_scraps_and_single_regions_agree_only_with_themselves():
    """The Rand index of two partitions into many scraps is near 1 whatever they are; the adjusted one is near 0."""
    scraps = [np.random.default_rng(s).integers(0, 400, 4000) for s in range(2)]
    assert abs(agreement_of_partitions(scraps)) < 0.01 and agreement_of_partitions([scraps[0]] * 3) == 1.0
    one, two, three = np.zeros(30, np.int64), np.arange(30) // 15, np.arange(30) // 10
    assert agreement_of_partitions([one, one]) == 1.0 and agreement_of_partitions([one, two]) == 0.0
    assert 0 < agreement_of_partitions([two, two, three]) == agreement_of_partitions([two, three, two]) < 1
    assert agreement_of_partitions([two, two, one]) == 0.0, "the least counts, not the mean"
    assert agreement_of_partitions([one]) is agreement_of_partitions([]) is None


@pytest.mark.parametrize(
    ("agreement", "error", "r_hat", "converged"),
    [
        (0.95, 0.03, 1.01, True),
        (0.5, 0.0, 1.0, False),
        (0.95, 0.05, 1.0, False),
        (0.95, 0.03, np.inf, False),
        (None, 0.03, 1.0, None),
        (None, 0.05, 1.0, False),
        (1.0, None, None, None),
    ],
)
def test_one_rule_decides_whether_chains_have_converged(agreement, error, r_hat, converged):
    assert Diagnostics(agreement, error, r_hat).converged is converged


def test_errors_of_components_add_up():
    """Two chains for each of two components: the mean over four, from the spread within each component alone."""
    of_chains = np.array([[[0.1], [0.9]], [[0.3], [0.5]]])
    expected = np.sqrt((0.2**2 / 2 + 0.4**2 / 2) / 2) / 2
    assert error_in_doubt(of_chains) == pytest.approx(expected)
    assert standard_errors(of_chains, of_chains) == pytest.approx([expected])  # pooled with itself
    assert np.isnan(standard_errors(of_chains[:1], of_chains[:1])).all() and error_in_doubt(of_chains[:1]) is None


def test_the_error_of_a_boundary_is_pooled_with_that_of_all_in_doubt():
    """By hand: four degrees of freedom of all, and one of its own."""
    edges = np.array([[[0.3, 0.5, 0.0]], [[0.5, 0.5, 0.0]]])  # the second has no spread, and the third is certain
    own, if_independent = np.array([0.1**2, 0, 0]), np.array([0.25, 0.26, 0.01])
    if_independent[0] = 0.4 * 0.6 + 0.01
    dependence = own[:2].sum() / if_independent[:2].sum()
    expected = np.sqrt((4 * dependence * if_independent + own) / 5)
    assert standard_errors(edges, edges) == pytest.approx(expected)
    assert standard_errors(edges[..., 1:], edges) == pytest.approx(expected[1:])


@pytest.mark.parametrize("n_components", [1, 12])
def test_two_standard_errors_cover_most_single_probabilities(n_components):
    """Simulated chains that stay where they are with probability .8; the spread alone covers far fewer."""
    rng = np.random.default_rng(4)
    n_edges, n_draws = 2000, 480 // n_components
    level = (np.arange(n_components)[:, None] + 0.5) / n_components
    truth = 1 / (1 + np.exp(30 * (level - rng.random(n_edges))))  # few levels are uncertain
    state = rng.random((2, n_components, n_edges)) < truth
    total = np.zeros(state.shape)
    for _ in range(n_draws):
        moves = rng.random(state.shape) > 0.8
        state = np.where(moves, rng.random(state.shape) < truth, state)
        total += state
    of_chains = total / n_draws
    far = np.abs(of_chains.mean(axis=(0, 1)) - truth.mean(axis=0))
    alone = np.sqrt(of_chains.var(axis=0, ddof=1).sum(axis=0) / 2) / n_components
    assert np.mean(far < 2 * standard_errors(of_chains, of_chains)) > 0.9
    assert np.mean(far < 2 * alone) < 0.87


def test_only_probabilities_in_doubt_have_a_part_in_the_error():
    of_chains = np.array([[[0.0, 0.4, 1.0, 0.05]], [[0.0, 0.6, 1.0, 0.15]]])
    assert error_in_doubt(of_chains) == pytest.approx(0.1)
    assert error_in_doubt(of_chains[..., [0, 2, 3]]) == 0.0 == error_in_doubt(of_chains[..., :0])


def test_a_foreign_graph_and_an_infinite_trace_are_refused():
    with pytest.raises(ValueError, match="graph must have the 6 sites of the chains: got 2"):
        diagnose(SAMPLED, ss.SiteGraph(2, []))
    with pytest.raises(ValueError, match="log_posterior must be finite: got -inf"):
        diagnose(made(np.full((2, 9), -np.inf)), GRAPH)


def test_export_to_arviz():
    for module in ("arviz_base", "xarray"):
        pytest.importorskip(module, reason='needs the extra "spinseg[diagnostics]"')
    tree = SAMPLED.to_arviz(GRAPH)
    np.testing.assert_array_equal(tree["partition"]["labels"], SAMPLED.labels)
    assert tree["partition"]["labels"].dims == ("chain", "draw", "site")
    # Each draw stands beside the traces of its own sweep.
    np.testing.assert_array_equal(tree["posterior"]["n_clusters"], count_clusters(SAMPLED.labels))
    exact = [[MODEL.log_posterior(draw) for draw in draws] for draws in SAMPLED.labels]
    np.testing.assert_allclose(tree["sample_stats"]["lp"], exact, atol=1e-9)
    assert set(tree["posterior"].data_vars) == {"n_clusters", "entropy", "edge_agreement"}
    assert "edge_agreement" not in SAMPLED.to_arviz()["posterior"]
    assert "component" not in tree["sample_stats"]
    trace = SAMPLED._traces["log_posterior"]
    drift = 1e-15 * np.abs(trace).max() * np.random.default_rng(0).uniform(-1, 1, trace.shape)
    drifted = replace(SAMPLED, _traces=SAMPLED._traces | {"log_posterior": trace + drift}).to_arviz(GRAPH)
    assert len(np.unique(drifted["sample_stats"]["lp"])) == len(np.unique(np.round(exact, 6)))  # ties stay ties
    mixed = ss.sample(ss.Model(GRAPH, ss.Flat(), ss.DirichletProcess(1.0), np.zeros((3, GRAPH.n_edges))), 9, 2, rng=0)
    np.testing.assert_array_equal(mixed.to_arviz()["sample_stats"]["component"], [mixed.component] * 2)
    chains = ss.sample(MODEL, sweeps=30, chains=2, burn_in=5, thin=4, concentration_prior=(2.0, 1.0), rng=0)
    found = chains.to_arviz()["posterior"]["concentration"]
    np.testing.assert_array_equal(found, chains.trace("concentration")[:, 8::4])  # each beside the draw of its sweep
    np.testing.assert_array_equal(found, chains.concentration)


def test_export_without_arviz_names_the_module_and_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz_base", None)
    extra = r'cannot be imported: pip install "spinseg\[diagnostics\]"'
    with pytest.raises(ss.MissingExtra, match=f"to_arviz needs the module arviz_base, which {extra}"):
        SAMPLED.to_arviz(GRAPH)
