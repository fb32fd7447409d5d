"""dd-CRP and rdd-CRP, and the plain sweep that speed is compared with, against enumeration."""

import itertools
import json
import os
import subprocess
import sys
import types
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import kstest

import exact
import model_cases
import spinseg as ss
from effort import effort, exhaustive
from kernel_source import IMPORTS, names_of, source_of
from spinseg.graph.site_graph import SiteGraph
from spinseg.partition.numbering import by_first_appearance
from spinseg.sampler.kernels.state import N_CLUSTERS
from studies.evaluation.baselines import ddcrp
from studies.evaluation.baselines.ddcrp import log_joint, new_state, regions_of_links, sample_ddcrp
from studies.evaluation.baselines.ddcrp_kernels import links as kernels
from studies.evaluation.baselines.ddcrp_kernels.links import Random, link_sweep
from studies.speed import plain

N_SITES = 4
GRAPHS = {
    "ring with a chord": ss.SiteGraph(N_SITES, [[0, 1], [1, 2], [2, 3], [3, 0], [0, 2]]),
    "path and a site alone": ss.SiteGraph(N_SITES, [[0, 1], [1, 3]]),
}
COUNTS = np.array([[4, 2, 0, 3], [1, 3, 0, 0], [0, 1, 0, 1], [2, 0, 0, 6]])
LIKELIHOODS = {
    "weight 0.7": ss.DirichletMultinomial(COUNTS, 5.0, 0.7),
    "weight 1": ss.DirichletMultinomial(COUNTS, 5.0),
    "two histograms": ss.Product(ss.DirichletMultinomial(COUNTS, 2.0, 0.3), ss.DirichletMultinomial(COUNTS % 2, 1.0)),
    "flat": ss.Flat(),
}
GAMMAS = [None, 0.05, 0.6, 4.0]


@cache
def states(graph, regions_are_clusters):
    """All (links, clusters), as two arrays, one state a row; clusters are the regions, or any partition of them."""
    targets = [[i, *graph.neighbors[graph.start[i] : graph.start[i + 1]].tolist()] for i in range(graph.n_sites)]
    pairs = []
    for links in itertools.product(*targets):
        regions = regions_of_links(links)
        merged = regions[None] if regions_are_clusters else exact.partitions(regions.max() + 1)[:, regions]
        pairs += [(links, clusters) for clusters in merged]
    return tuple(np.array(rows, dtype=np.int32) for rows in zip(*pairs, strict=True))


@cache
def prior_of_states(graph, alpha, gamma):
    """Log prior of each state, by the oracle without data."""
    listed = zip(*states(graph, gamma is None), strict=True)
    return np.array([log_joint(graph, ss.Flat(), *state, alpha=alpha, gamma=gamma) for state in listed])


def probabilities(graph, likelihood, alpha, gamma):
    """Exact posterior of each state; the likelihood of each partition is evaluated once."""
    rows, which = np.unique(states(graph, gamma is None)[1], axis=0, return_inverse=True)
    marginals = [sum(likelihood.log_marginal(row == t) for t in range(row.max() + 1)) for row in rows]
    log_p = prior_of_states(graph, alpha, gamma) + np.array(marginals)[which.reshape(-1)]
    return np.exp(log_p - np.logaddexp.reduce(log_p))


def frequencies(links, clusters, graph, regions_are_clusters):
    """How often each of `states` occurs among rows of links and clusters."""
    known = exact.code(np.hstack(states(graph, regions_are_clusters)))
    order = np.argsort(known)
    found = exact.code(np.hstack([links, clusters]))
    index = order[np.searchsorted(known[order], found).clip(max=known.size - 1)]
    assert (known[index] == found).all()
    return np.bincount(index, minlength=known.size)


def sweep_each(problem, link_rows, label_rows, rng):
    """Start at each row of links and clusters, do one sweep, and write where it ends."""
    numbers = Random(rng)
    for r in range(link_rows.shape[0]):
        clusters, links = new_state(problem, link_rows[r], label_rows[r])
        link_sweep(problem.target, clusters, links, numbers)
        link_rows[r], label_rows[r] = links.link, by_first_appearance(clusters.label)


def p_after_one_sweep(graph, likelihood, alpha, gamma, n_draws, seed, sweep_each=sweep_each):
    """Chi-square p-value of the states after one sweep from independent exact draws of the posterior."""
    rng = np.random.default_rng(seed)
    p = probabilities(graph, likelihood, alpha, gamma)
    drawn = rng.choice(p.size, n_draws, p=p)
    links, clusters = (rows[drawn] for rows in states(graph, gamma is None))
    problem = ddcrp.pack_problem(graph, likelihood, alpha, gamma)
    sweep_each(problem, links, clusters, rng)
    return exact.p_value(frequencies(links, clusters, graph, gamma is None), p)


def test_one_sweep_leaves_the_posterior_of_links_and_clusters_invariant():
    cases = itertools.product(GRAPHS, LIKELIHOODS, [0.05, 2.0], GAMMAS)
    p_values = {
        case: p_after_one_sweep(GRAPHS[case[0]], LIKELIHOODS[case[1]], *case[2:], effort(1500, 8000), seed)
        for seed, case in enumerate(cases)
    }
    assert len(p_values) == 2 * 4 * 2 * 4
    worst = min(p_values, key=p_values.get)
    assert p_values[worst] > 1e-6, (worst, p_values[worst])
    assert kstest(list(p_values.values()), "uniform").pvalue > 1e-5


# The compiled code: what is shared with the sampler of spinseg, as one text, and the rest.
TEXT = (Path(ddcrp.__file__).parent / "ddcrp_kernels" / "links.py").read_text()
SHARED, SOURCE = source_of(TEXT), IMPORTS.sub("", TEXT)
FAULTS = {  # what goes wrong: (the line as it is, the line with the fault)
    "nothing": ("", ""),
    "a new cluster has weight 1 instead of gamma": (
        "return links.log_weight[links.n_regions[slot]]",
        "return (links.log_weight[links.n_regions[slot]] if links.n_regions[slot] else 0.0)",
    ),
    "a cluster has weight 1 instead of its number of regions": (
        "return links.log_weight[links.n_regions[slot]]",
        "return links.log_weight[min(links.n_regions[slot], 1)]",
    ),
    "the Chinese restaurant process is not normalized": (" - links.log_total[links.counters[N_REGIONS]]", ""),
    "a subtree that becomes a region keeps its cluster": (
        "        clusters.log_weight[d] = links.log_likelihood[slot] + log_prior",
        "        clusters.log_weight[d] = links.log_likelihood[slot] + log_prior"
        " if slot == old or links.n_joining[slot] > 0 else -1e9",
    ),
    "links inside the subtree are forgotten": ("            n_inside += 1\n", ""),
    "in its own cluster the subtree counts twice": (
        "    state.log_weight[old] = 0.0  # this",
        "    n_bins = 0  # this",
    ),
}


def broken(fault):
    """One sweep with a fault, interpreted: compiling each would take longer."""
    right, wrong = FAULTS[fault]
    assert not right or (SHARED + SOURCE).count(right) == 1, right
    shared, own = (source.replace(right, wrong) if right else source for source in (SHARED, SOURCE))
    # `own` finds the names of the kernels, which it does not change.
    names = {name: value for name, value in names_of(shared).items() if not name.startswith("__")}
    names = names_of(own, names) | {"new_state": new_state, "by_first_appearance": by_first_appearance}
    return types.FunctionType(sweep_each.__code__, names)


@exhaustive
@pytest.mark.parametrize("fault", list(FAULTS)[: effort(2, None)])
def test_the_fault_is_caught(fault):
    case = (GRAPHS["ring with a chord"], LIKELIHOODS["weight 0.7"], 3.0, 0.15)
    p = p_after_one_sweep(*case, 1500, 2, broken(fault))
    assert p > 1e-6 if fault == "nothing" else p < 1e-6, p


# --- Against answers that were computed apart from this project ---

GOLDEN = Path(os.environ.get("SPINSEG_GOLDEN", Path(__file__).parents[3] / "shared" / "golden")) / "ddcrp.json"


@pytest.fixture(scope="module")
def golden():
    if not GOLDEN.exists():
        pytest.skip(f"{GOLDEN} is not here: set SPINSEG_GOLDEN to its folder")
    return json.loads(GOLDEN.read_text())


@pytest.mark.parametrize("process", ["ddcrp_regions", "rddcrp_clusters"])
def test_enumeration_and_long_run_frequencies_agree_with_the_golden_answers(golden, process):
    graph = ss.SiteGraph(golden["n_sites"], golden["edges"])
    likelihood = ss.DirichletMultinomial(golden["counts"], golden["phi"], golden["count_weight"])
    gamma = None if process == "ddcrp_regions" else golden["gamma"]
    known = np.zeros(len(exact.partitions(N_SITES)))
    for entry in golden[process]:
        known += entry["probability"] * (exact.partitions(N_SITES) == entry["labels"]).all(axis=1)

    p, clusters = probabilities(graph, likelihood, golden["alpha"], gamma), states(graph, gamma is None)[1]
    of_partition = np.searchsorted(exact.code(exact.partitions(N_SITES)), exact.code(clusters))
    np.testing.assert_allclose(np.bincount(of_partition, p, known.size), known, rtol=0, atol=1e-9)

    # Long-run frequencies, with their error from batches of 400 sweeps.
    n_batches, how = effort(100, 800), {"init": "one", "burn_in": 400, "thin": 1, "rng": 3}
    chain = sample_ddcrp(graph, likelihood, 400 * n_batches + 400, alpha=golden["alpha"], gamma=gamma, **how)
    shares = np.array([exact.frequencies(batch) / 400 for batch in chain.labels.reshape(n_batches, 400, -1)])
    assert not shares[:, known == 0].any()
    common = known > 0.4 / n_batches  # 160 draws are expected
    error = shares.std(axis=0, ddof=1) / np.sqrt(len(shares))
    z = (shares.mean(axis=0) - known)[common] / error[common]
    assert np.abs(z).max() < 4.5, z


def grid_problem(side):
    """Sites on a grid, two kinds of histograms in halves."""
    rng = np.random.default_rng(0)
    kinds = np.repeat(rng.dirichlet(np.full(12, 0.3), 2), side * side // 2, axis=0)
    counts = np.array([rng.multinomial(20, kind) for kind in kinds])
    return SiteGraph.grid((side, side)), ss.DirichletMultinomial(counts, 8.0, 0.35)


@pytest.mark.parametrize("init", ["one", "singletons"])
@pytest.mark.parametrize(("alpha", "gamma"), [(1e-10, None), (1e-10, 1e-2), (0.5, None), (0.5, 8.0)])
def test_regions_tables_counts_and_log_joint_equal_those_recomputed(alpha, gamma, init):
    graph, likelihood = grid_problem(10)
    problem = ddcrp.pack_problem(graph, likelihood, alpha, gamma)
    chain = sample_ddcrp(graph, likelihood, 150, alpha=alpha, gamma=gamma, init=init, rng=1)
    value = log_joint(graph, likelihood, chain.links, chain.clusters, alpha=alpha, gamma=gamma)
    np.testing.assert_allclose(chain.log_joint[-1], value, rtol=1e-11)
    assert chain.n_regions[-1] == regions_of_links(chain.links).max() + 1
    assert chain.n_clusters[-1] == chain.clusters.max() + 1

    clusters, links = ddcrp.new_state(problem, chain.links, chain.clusters)
    rng = np.random.default_rng(2)
    for _ in range(30):
        while kernels.link_sweep(problem.target, clusters, links, Random(rng)) == kernels.FULL:
            clusters, links = ddcrp.resized(clusters, links)
        k = int(clusters.counters[N_CLUSTERS])
        labels = clusters.slot_of[clusters.label].astype(np.int32)
        new_clusters, new_links = ddcrp.new_state(problem, links.link, labels)
        assert k == new_clusters.counters[N_CLUSTERS]
        assert links.counters[kernels.N_REGIONS] == new_links.counters[kernels.N_REGIONS]
        for old, new, names in (
            (clusters, new_clusters, ("size", "counts", "value")),
            (links, new_links, ("n_regions",)),
        ):
            for name in names:
                ours, theirs = getattr(old, name), getattr(new, name)
                np.testing.assert_array_equal(ours[..., :k], theirs[..., :k])
                assert not ours[..., k:].any()
        assert not links.n_joining.any() and not clusters.pooled.any()
        check_lists(links)


def check_lists(links):
    """Each link to another site is in the list of its target, once, and no other is."""
    pairs = []
    for i in range(links.link.size):
        last, j = -1, int(links.first_source[i])
        while j >= 0:
            assert links.previous_source[j] == last
            pairs.append((j, i))
            last, j = j, int(links.next_source[j])
    assert sorted(pairs) == [(i, j) for i, j in enumerate(links.link.tolist()) if i != j]


def test_running_out_of_slots_changes_nothing():
    graph, sweeps = SiteGraph.grid((8, 8)), 20
    problem = ddcrp.pack_problem(graph, ss.Flat(), 2.0, 20.0)
    apart, one = np.arange(graph.n_sites, dtype=np.int32), np.zeros(graph.n_sites, np.int32)
    few, links = ddcrp.new_state(problem, ddcrp.spanning_links(graph), one)
    many, _ = ddcrp.new_state(problem, apart, apart)  # tables for as many clusters as sites
    of_all = np.zeros(many.size.size, np.int64)
    many.label[:], many.size[:], many.counters[N_CLUSTERS] = 0, 0, 1
    many.size[0], of_all[0] = graph.n_sites, 1
    clusters = many
    links = links._replace(n_regions=of_all, n_joining=0 * of_all, log_likelihood=np.zeros(of_all.size))
    assert few.size[0] == clusters.size[0]
    rng, n_clusters = np.random.default_rng(4), []
    for _ in range(sweeps):
        assert kernels.link_sweep(problem.target, clusters, links, Random(rng)) == kernels.DONE
        n_clusters.append(clusters.counters[N_CLUSTERS])
    assert max(n_clusters) > ddcrp.new_state(problem, links.link, 0 * apart)[1].n_regions.size
    chain = sample_ddcrp(graph, ss.Flat(), sweeps, alpha=2.0, gamma=20.0, init="one", rng=4)
    assert chain.n_clusters.tolist() == n_clusters
    np.testing.assert_array_equal(chain.links, links.link)


SMALL_RUN = """
import json
import test_ddcrp as t
graph, likelihood = t.grid_problem(6)
runs = [
    t.sample_ddcrp(graph, likelihood, 15, alpha=alpha, gamma=gamma, init=init, thin=1, rng=5)
    for alpha in (1e-10, 0.7) for gamma in (None, 0.6, 9.0) for init in ("one", "singletons")
]
print(json.dumps([[run.labels.tolist(), run.links.tolist(), run.log_joint.tolist()] for run in runs]))
"""


@exhaustive
def test_compiled_equals_interpreted():
    def small_run(**environment):
        place = {"cwd": os.path.dirname(__file__), "env": os.environ | environment}
        run = subprocess.run([sys.executable, "-c", SMALL_RUN], **place, check=True, capture_output=True, text=True)
        return json.loads(run.stdout)

    for compiled, interpreted in zip(small_run(), small_run(SPINSEG_INTERPRETED="1"), strict=True):
        assert compiled[:2] == interpreted[:2]
        np.testing.assert_allclose(compiled[2], interpreted[2], rtol=1e-12)


@pytest.mark.parametrize("gamma", [None, 1.0])
def test_a_chain_repeats_itself_and_keeps_its_best(gamma):
    graph, likelihood = grid_problem(6)
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    run = partial(sample_ddcrp, graph, likelihood, alpha=0.1, gamma=gamma, thin=1)
    first, again, other = (run(60, rng=seed) for seed in (7, 7, 8))
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002
    np.testing.assert_array_equal(first.log_joint, again.log_joint)
    np.testing.assert_array_equal(first.links, again.links)
    assert (first.log_joint != other.log_joint).any()

    best = int(first.log_joint.argmax())
    assert first.best_log_joint == first.log_joint[best]
    np.testing.assert_array_equal(first.best_labels, first.labels[best])
    assert first.n_clusters.tolist() == [row.max() + 1 for row in first.labels]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gamma": -1.0}, r"gamma must be a finite number above 0: got -1\.0"),
        ({"burn_in": 9}, "burn_in must be at most sweeps, 5: got 9"),
        ({"init": "tree"}, "init must be one of 'singletons', 'one': got 'tree'"),
        ({"likelihood": ss.PoissonGamma([1, 2, 3, 4])}, "likelihood must be of histograms"),
    ],
    ids=lambda value: value if isinstance(value, str) else next(iter(value)),
)
def test_wrong_input_is_refused_in_one_line(change, message):
    given = {"graph": GRAPHS["path and a site alone"], "likelihood": LIKELIHOODS["weight 1"], "sweeps": 5}
    with pytest.raises(ValueError, match=message) as refused:
        sample_ddcrp(**(given | change))
    assert "\n" not in str(refused.value)


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
