"""Draws of every detail: the estimate at any, the hierarchy of boundaries, and what is said of how far to trust them."""

from dataclasses import replace
from functools import cache
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image
from skimage.segmentation import find_boundaries

import spinseg as ss
from effort import effort, exhaustive
from spinseg._run.progress import Progress, _Staged
from spinseg.partition.contingency import adjusted_rand_index_of, contingency_table
from spinseg.partition.pairs import separation_probability
from spinseg.pictures import PICTURES
from spinseg.sampler.convergence import ERROR_LIMIT, error_in_doubt, separation_of_chains, standard_errors
from spinseg.sampler.diagnostics import Diagnostics, may_stop
from spinseg.segmentation.batch import segment_files
from spinseg.segmentation.presets.photo import details_near, details_of
from spinseg.segmentation.schedule import (
    FEWEST_SWEEPS,
    MAX_SWEEPS,
    ROUND_SWEEPS,
    Schedule,
    expected_sweeps,
    sample_posterior,
)
from spinseg.segmentation.verdict import headline, shortfalls

pytestmark = pytest.mark.xdist_group("detail")  # they share a segmentation


@cache
def coffee():
    with Image.open(PICTURES["coffee"].path) as image:
        return np.asarray(image)[60:220, 150:350]


@pytest.fixture(scope="module")
def found():
    return ss.segment(coffee(), rng=1, sweeps=60)


def assert_same_draws(a, b):
    for one, other in ((a.chains.labels, b.chains.labels), (a.labels, b.labels), (a.separation, b.separation)):
        np.testing.assert_array_equal(one, other)


def test_a_segmentation_at_another_detail_has_the_same_draws(found):
    counts = []
    for detail in effort((0.0, 1.0), (0.0, 0.3, 0.6, 1.0)):
        at = found.at(detail)
        assert at.chains is found.chains and at.preset.detail == detail
        np.testing.assert_array_equal(at.labels, at.partition[at.sites] + 1)
        assert (np.diff(np.bincount(at.labels.ravel())[1:]) <= 0).all()  # the largest first
        np.testing.assert_array_equal(at.boundary_probability, found.boundary_probability)
        assert found.model.component(0).allows(at.partition)
        assert at.n_clusters == len(at.regions) == at.summary()["n_clusters"]
        counts.append(at.n_clusters)
    assert counts[0] < counts[-1]
    np.testing.assert_array_equal(found.at(ss.Photo().detail).labels, found.labels)
    for wrong in (-0.1, 1.1, "fine", None):
        with pytest.raises(ss.InvalidInput, match="detail must be a finite number of at least 0 and at most 1"):
            found.at(wrong)


@pytest.mark.parametrize("preset", ["paper", "classes"])
def test_another_level_of_detail_of_a_preset_without_levels_is_refused_with_those_that_have_them(preset):
    found = ss.segment(coffee()[:60, :80], preset, sweeps=4, rng=0)
    line = rf"^the preset {preset} has no levels of detail to choose from\. Segment with one of auto, photo, measured, "
    with pytest.raises(ss.InvalidInput, match=line):
        found.at(0.3)


def test_an_estimate_is_made_from_the_details_near_it():
    for n in (1, 2, 5, 6, 11):
        for detail in np.linspace(0, 1, 41):
            near = details_near(detail, n)
            middle = (near + 0.5) / n
            assert near.size and (np.diff(near) == 1).all()
            nearest = np.abs((np.arange(n) + 0.5) / n - detail).argmin()
            assert nearest in near and np.abs(middle - detail).max() <= max(0.25, 0.5 / n) + 1e-9
    for detail, near in ((0.0, [0]), (0.5, [1, 2, 3, 4]), (1.0, [5])):
        assert details_near(detail, 6).tolist() == near


def test_the_separation_of_an_edge_is_its_mean_over_the_details(found):
    edges, chains = found.model.graph.edges, found.chains
    each = [separation_probability(chains.labels[:, chains.component == d], edges) for d in range(chains.n_components)]
    np.testing.assert_allclose(found.separation, np.mean(each, axis=0))
    means = [p.mean() for p in each]  # the finer, the more boundaries, but for chance
    assert (np.diff(means) > -0.03).all() and means[-1] > means[0] + 0.2
    shown = found.boundary_probability[found.boundary_probability > 0.02]
    assert np.mean((shown > 0.05) & (shown < 0.95)) > 0.3  # boundaries are graded


@exhaustive
def test_a_certain_boundary_is_one_of_the_labels():
    image = np.zeros((90, 120, 3))
    image[20:70, 30:80] = (0.9, 0.8, 0.2)
    found = ss.segment(image, rng=0)
    certain = found.boundary_probability > 0.9
    assert certain.any() and find_boundaries(found.labels)[certain].all()


def test_levels_are_nested_and_lose_boundaries(found):
    hierarchy = found.hierarchy
    levels = 0.0003 + 0.9991 * np.linspace(0, 1, 21)  # no height that is a share of the draws
    images = [hierarchy.labels(level) for level in levels]
    for fine, coarse in pairwise(images):
        joined = np.unique(np.stack([fine.ravel(), coarse.ravel()]), axis=1)
        assert np.unique(joined[0]).size == joined.shape[1]  # a finer region lies in one coarser
    assert images[-1].max() == 1 and images[0].max() > 10
    for level, labels in zip(levels, images, strict=True):
        np.testing.assert_array_equal(find_boundaries(labels), hierarchy.boundary > np.float32(level))
    with pytest.raises(ss.InvalidInput, match="level must be a finite number of at least 0 and at most 1"):
        hierarchy.labels(2)


def test_the_program_samples_until_the_chains_have_converged():
    small = coffee()[:90, :120]
    seg = ss.segment(small, rng=0)
    n, error = seg.chains.n_sweeps, seg.diagnostics.standard_error
    assert n % ROUND_SWEEPS == 0 and n <= MAX_SWEEPS
    assert n == MAX_SWEEPS or seg.converged or error <= ERROR_LIMIT / 2
    assert_same_draws(seg, ss.segment(small, rng=0, workers=1))
    assert seg.converged == (seg.agreement >= 0.9 and seg.r_hat <= 1.05 and error <= ERROR_LIMIT)
    assert seg.ess > 0


@exhaustive
def test_the_error_of_probabilities_is_that_of_repeated_runs():
    """Over many pairs of chains the estimated error has the size of the true one."""
    graph = ss.SiteGraph(4, [[0, 1], [1, 2], [2, 3]])
    model = ss.Model(graph, ss.PoissonGamma([1, 2, 4, 5]), ss.DirichletProcess(1.0), beta=0.5)
    exact = separation_probability(ss.sample(model, 100_000, 1, thin=5, rng=0).labels, graph.edges)
    claimed, true = [], []
    for seed in range(400):
        chains = ss.sample(model, 60, 2, burn_in=10, rng=seed)
        of_chains = separation_of_chains(chains, graph.edges)
        claimed.append(standard_errors(of_chains, of_chains) ** 2)
        true.append((separation_probability(chains.labels, graph.edges) - exact) ** 2)
    np.testing.assert_allclose(np.mean(claimed, axis=0), np.mean(true, axis=0), rtol=0.5)  # 5 standard errors


def test_every_boundary_has_the_standard_error_of_its_own_probability(found):
    """From the two chains at each detail, and the mean separation along the boundary."""
    regions = np.array([row["region"] for row in found.region_rows])[found._region_of_site]
    edges, n_details = found.model.graph.edges, found.chains.n_components
    ends = np.sort(regions[edges], axis=1)
    along = []
    for row in found.boundary_rows:
        mine = (ends == (row["region"], row["neighbor"])).all(axis=1)
        weights = found.model.graph.length[mine] / found.model.graph.length[mine].sum()
        means = np.empty((2, n_details))
        for chain, detail in np.ndindex(means.shape):
            draws = found.chains.labels[chain, detail::n_details][:, edges[mine]]
            means[chain, detail] = (draws[..., 0] != draws[..., 1]).mean(axis=0) @ weights
        assert row["probability"] == pytest.approx(means.mean(), abs=1e-6)
        along.append(means)
    expected = standard_errors(np.stack(along, axis=-1), separation_of_chains(found.chains, edges))
    assert [row["standard_error"] for row in found.boundary_rows] == pytest.approx(expected, abs=1e-6)
    assert min(expected) > 0 and found.summary()["boundaries"] == found.boundary_rows


def test_unknown_numbers_are_not_shown(found):
    one = ss.segment(coffee()[:60, :80], sweeps=10, chains=1, rng=0)
    assert one.converged is None and one.agreement is None and one.r_hat is None
    assert "One chain" in one.verdict and all(row["standard_error"] is None for row in one.boundary_rows)
    empty = replace(found.chains, labels=found.chains.labels[:, :0])
    assert error_in_doubt(separation_of_chains(empty, found.model.graph.edges)) is None


def test_the_best_partition_is_that_of_the_detail_and_agreement_that_of_each_chain():
    blocks = np.random.default_rng(0).integers(0, 255, (12, 12, 3)).astype(np.uint8).repeat(5, axis=0).repeat(5, axis=1)
    best = ss.segment(blocks, "photo", estimate="best", sweeps=6, n_sites=60, rng=0)
    chains, n_details = best.chains, best.chains.n_components
    for detail, component in ((0.0, 0), (1.0, n_details - 1)):
        model = best.model.component(component)
        shown = model.log_posterior(best.at(detail).partition)
        assert shown == pytest.approx(max(model.log_posterior(chains.best_of(component, c)) for c in range(2)))
    assert best.at(0.0).n_clusters < best.at(1.0).n_clusters
    alone = [chains.best_of(np.abs(np.array(details_of(n_details)) - best.preset.detail).argmin(), c) for c in range(2)]
    index = adjusted_rand_index_of(contingency_table(*alone, best.site_area))
    assert best.agreement == pytest.approx(index) and best.agreement < 1 and best.site_area.sum() == best.labels.size


def test_the_verdict_tells_regions_and_probabilities_apart(found):
    assert headline(found.summary())[1] in found.verdict
    draws = np.tile(found.chains.labels[:1, : found.chains.n_components], (2, 30, 1))
    same = replace(found, chains=replace(found.chains, labels=draws, component=np.tile(np.arange(12), 30)))
    assert -0.5 <= found.agreement <= 1 and same.agreement > 0.9  # searches may end at equally good partitions
    assert same.diagnostics.standard_error == 0
    assert "The regions have converged, but" in same.verdict or "The regions and their" in same.verdict


@pytest.mark.parametrize("preset", ["photo", "paper"])
def test_sampling_for_a_time_is_repeated_by_its_number_of_sweeps(preset):
    image = coffee()[:60, :80]
    timed = ss.segment(image, preset, seconds=0.01, rng=3)
    n_sweeps = timed.chains.n_sweeps
    assert timed.schedule.seconds == 0.01 and timed.schedule.sweeps is None and n_sweeps == FEWEST_SWEEPS
    assert f"sweeps={n_sweeps}" in timed.python_code and "seconds" not in timed.python_code
    assert_same_draws(timed, ss.segment(image, preset, sweeps=n_sweeps, rng=3))


def test_an_interrupted_time_has_no_draws_of_its_burn_in():
    def interrupt(at):
        if at.done >= 200:  # of all details together
            raise KeyboardInterrupt

    with pytest.raises(ss.SegmentationInterrupted) as caught:
        ss.segment(coffee()[:60, :80], seconds=1e6, chains=1, workers=1, rng=3, progress=interrupt)
    found, n_sweeps = caught.value.segmentation, caught.value.segmentation.chains.n_sweeps
    assert n_sweeps >= 1 and found.chains.burn_in == n_sweeps // 2 and found.interrupted
    assert_same_draws(found, ss.segment(coffee()[:60, :80], sweeps=n_sweeps, chains=1, rng=3))


def test_a_batch_with_a_time_goes_on_where_it_ended(tmp_path):
    Image.fromarray(coffee()[:60, :80]).save(tmp_path / "cup.png")
    arguments = [str(tmp_path / "cup.png")], tmp_path / "out"
    for resumed in (False, True):
        [(_, outcome)] = segment_files(*arguments, {"seconds": 0.01, "chains": 1, "rng": 0}, resume=True)
        assert not outcome.error and outcome.done_before is resumed
    [(_, outcome)] = segment_files(*arguments, {"seconds": 0.02, "chains": 1, "rng": 0}, resume=True)
    assert "holds the result of another run (seconds 0.01, not 0.02)" in outcome.error


@pytest.mark.parametrize(("cost", "spent", "n_sweeps"), [(0.1, 0, 20), (0.4, 0, 5), (0.4, 1.2, 4), (9.0, 0, 4)])
def test_a_given_time_is_kept_whatever_a_sweep_takes(monkeypatch, cost, spent, n_sweeps):
    """Unless not even a few sweeps fit into it."""
    now = 100.0

    def advance(self, n=None, whole=ss.Sampler.advance):
        nonlocal now
        whole(self, n)
        self._seconds = cost * self.n_sweeps
        now += cost * n

    monkeypatch.setattr(ss.Sampler, "advance", advance)
    monkeypatch.setattr("spinseg.segmentation.schedule.time", SimpleNamespace(monotonic=lambda: now))
    model = ss.Model(ss.SiteGraph(2, [[0, 1]]), ss.Flat(), ss.DirichletProcess(1.0))
    drawn = sample_posterior(model, ss.Paper(), Schedule(1, seconds=2.0), 0, began=now - spent)
    assert abs(drawn.n_sweeps - n_sweeps) <= (n_sweeps > FEWEST_SWEEPS)  # rounding
    assert now <= max(102.0 - spent, 100.0 + FEWEST_SWEEPS * cost) + cost / 2 and drawn.burn_in == drawn.n_sweeps // 2


@pytest.mark.parametrize("how", [{}, {"sweeps": 10}, {"seconds": 0.1}, {"sweeps": 10, "preset": "paper"}])
def test_a_function_is_told_from_the_start_how_much_is_done_and_how_much_is_expected(how):
    seen = []
    ss.segment(coffee()[:60, :80], rng=0, progress=seen.append, **how)
    assert seen[0]._replace(log_posterior=0.0) == Progress(0, 1, 0, 0.0, stage="reading")
    stages = list(dict.fromkeys(progress.stage.partition(":")[0] for progress in seen))
    assert stages[:4] == ["reading", "finding boundary evidence", "finding superpixels", "comparing superpixels"]
    assert stages[4] == "sampling" and stages[-1] == "drawing outlines"
    assert all(progress.done <= progress.total for progress in seen)
    assert seen[-1].done == seen[-1].total > 1


def test_the_sweeps_that_are_expected_follow_from_what_the_chains_lack():
    seen = []
    report = _Staged(seen.append)
    report(Progress(5, 100, 2, -1.0))
    report.stage("sampling: more", 0.2)
    report(Progress(15, 100, 3, -2.0))
    report.stage("drawing outlines")
    assert [(at.done, at.total, at.stage) for at in seen] == [
        (5, 100, "sampling"),
        (5, 20, "sampling: more"),
        (15, 20, "sampling: more"),
        (15, 20, "drawing outlines"),
    ]


def test_chains_go_on_while_probabilities_partitions_or_traces_differ(found):
    chains, graph = found.chains, found.model.graph
    equal = np.zeros(graph.n_sites, int), np.zeros(graph.n_sites, int)
    ones = {**chains._traces, "n_clusters": np.ones_like(chains._traces["n_clusters"])}
    alike = replace(chains, labels=np.stack([chains.labels[0]] * 2), _traces=ones)
    assert may_stop(alike, graph, lambda _: [equal, equal])
    labels = alike.labels.copy()
    labels[0], labels[1] = 0, np.arange(graph.n_sites)
    assert not may_stop(replace(alike, labels=labels), graph, lambda _: [equal, equal])
    more = {**ones, "n_clusters": ones["n_clusters"] + np.array([[0], [1]])}
    assert not may_stop(replace(alike, _traces=more), graph, lambda _: [equal, equal])


class Listener:
    """What a progress bar would show: the stages, and how full it is while sampling."""

    def __init__(self):
        self.stages, self.filled, self.share = [], [], 1.0

    def stage(self, words, share=None):
        self.stages.append(words)
        self.share = share or 1.0

    def __call__(self, progress):
        self.filled.append(progress.done / (progress.total * self.share))


@pytest.mark.parametrize("how", [{}, {"sweeps": 10}, {"chains": 1, "sweeps": 10}, {"seconds": 0.1}])
def test_progress_says_what_is_done_and_ends_full(how):
    shown = Listener()
    ss.segment(coffee()[:60, :80], rng=0, progress=shown, **how)
    kinds = list(dict.fromkeys(words.partition(":")[0] for words in shown.stages))
    prepared = ["reading", "finding boundary evidence", "finding superpixels", "comparing superpixels", "sampling"]
    assert kinds[:5] == prepared and kinds[-1] == "drawing outlines"
    assert "seconds" in how or (shown.filled[-1] == 1 and max(shown.filled) <= 1)


def test_the_number_that_is_missing_is_shown_and_how_many_sweeps_it_takes(found):
    chains, graph, seen = found.chains, found.model.graph, []
    labels = np.stack([chains.labels[0], np.zeros_like(chains.labels[0])])
    assert not may_stop(replace(chains, labels=labels), graph, lambda _: None, tell=seen.append)
    (shortfall,) = shortfalls(seen[0])
    assert shortfall.startswith("standard error 0.") and shortfall.endswith(", at most 0.04 needed")
    for diagnostics, expected in [
        (Diagnostics(None, 2 * ERROR_LIMIT, None), 200),  # four times the 40 draws, after the burn-in
        (Diagnostics(None, 0.0, 1.1), 120),
        (Diagnostics(0.5, ERROR_LIMIT, 1.0), 200),
        (Diagnostics(0.5, ERROR_LIMIT / 2, 1.0), 120),  # at least until the next check
        (Diagnostics(None, 0.0, np.inf), MAX_SWEEPS),
        (Diagnostics(None, None, None), MAX_SWEEPS),
    ]:
        assert expected_sweeps(diagnostics, 80) == expected


@pytest.mark.parametrize(("error", "stops"), [(0.03, False), (0.01, True)])
def test_chains_that_disagree_go_on_until_more_sweeps_are_of_no_use(error, stops):
    """Two chains whose edge in doubt has this standard error, and whose partitions agree or not."""
    graph, half = ss.SiteGraph(2, [[0, 1]]), round(100 * error)
    apart = np.arange(100) % 2 == 0  # in turn, so that halves are alike
    each = [apart.copy(), apart.copy()]
    each[0][np.flatnonzero(~apart)[np.linspace(0, 49, half).astype(int)]] = True
    each[1][np.flatnonzero(apart)[np.linspace(0, 49, half).astype(int)]] = False
    labels = np.zeros((2, 100, 2), np.int32)
    labels[..., 1] = each
    drawn = ss.sample(ss.Model(graph, ss.Flat(), ss.DirichletProcess(1.0)), 100, 2, rng=0)
    chains = replace(drawn, labels=labels, _traces=drawn._traces | {"n_clusters": np.ones_like(drawn.n_clusters)})
    assert error_in_doubt(separation_of_chains(chains, graph.edges)) == pytest.approx(half / 100)
    one, two = np.array([0, 0]), np.array([0, 1])
    assert may_stop(chains, graph, lambda _: [one, one])
    assert may_stop(chains, graph, lambda _: [one, two]) is stops
