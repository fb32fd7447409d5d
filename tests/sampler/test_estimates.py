"""Estimates from draws, each against its slow definition or against all partitions of six sites."""

import itertools
from functools import cache, partial

import numpy as np
import pytest

import spinseg as ss
from effort import effort
from exact import partitions
from kernel_source import names_of, source_of
from spinseg.partition import pairs
from spinseg.partition.numbering import by_first_appearance
from spinseg.partition.pairs import co_clustering, count_clusters, separation_probability
from spinseg.sampler import estimate_search as searching
from spinseg.sampler.estimates import credible_ball, expected_binder, expected_vi, minimize_binder, minimize_vi

ALL_PARTITIONS = partitions(effort(5, 6))
LOSSES = {"vi": (minimize_vi, expected_vi), "binder": (minimize_binder, expected_binder)}
COSTS = [(1.0, 1.0), (0.3, 1.0), (1.0, 0.4), (5.0, 0.2), (1.0, 30.0)]


def slow_vi(a, b):
    """The definition: H(a | b) + H(b | a), in bits."""
    total = 0.0
    for i, j in itertools.product(np.unique(a), np.unique(b)):
        both = np.mean((a == i) & (b == j))
        if both > 0:
            total -= both * (np.log2(both / np.mean(a == i)) + np.log2(both / np.mean(b == j)))
    return total


def slow_binder(draw, candidate, apart=1.0, together=1.0):
    """The definition: a cost for each pair of sites."""
    pairs = list(itertools.combinations(range(len(draw)), 2))
    loss = sum(apart * (draw[i] == draw[j] and candidate[i] != candidate[j]) for i, j in pairs)
    return (loss + sum(together * (draw[i] != draw[j] and candidate[i] == candidate[j]) for i, j in pairs)) / len(pairs)


def random_draws(seed, n_draws=None):
    """Draws of six sites, either anything or concentrated on a few partitions."""
    rng = np.random.default_rng(seed)
    n_draws = n_draws or rng.integers(1, 12)
    weights = rng.dirichlet(np.full(len(ALL_PARTITIONS), 0.05 if seed % 2 else 1.0))
    return ALL_PARTITIONS[rng.choice(len(ALL_PARTITIONS), n_draws, p=weights)]


def blurred(seed, n_sites=60, n_draws=40, noise=0.25):
    """Draws around one partition of more sites."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 5, n_sites)
    draws = np.where(rng.random((n_draws, n_sites)) < noise, rng.integers(0, 7, (n_draws, n_sites)), truth)
    return draws.astype(np.int32)


def scrambled(draws, seed):
    """The same partitions under other numbers."""
    rng = np.random.default_rng(seed)
    return np.array([rng.permutation(1000)[:50][draw] for draw in draws])


# --- Losses ---


@pytest.mark.parametrize("seed", range(20))
def test_expected_losses_equal_their_definitions(seed):
    draws, candidate = random_draws(seed), random_draws(seed + 100)[0]
    vi = np.mean([slow_vi(draw, candidate) for draw in draws])
    assert expected_vi(draws, candidate) == pytest.approx(vi)
    for apart, together in COSTS:
        binder = np.mean([slow_binder(draw, candidate, apart, together) for draw in draws])
        assert expected_binder(draws, candidate, cost_apart=apart, cost_together=together) == pytest.approx(binder)


def test_one_site_alone_has_no_loss():
    assert expected_vi([[0]], [5]) == expected_binder([[0]], [5]) == 0.0
    assert minimize_vi([[4]], rng=0).labels.tolist() == minimize_binder([[4]], rng=0).labels.tolist() == [0]


# --- The partition of least expected loss ---


@cache
def all_losses(loss, *costs):
    """Loss of each partition against each: candidate x draw."""
    return np.array([[loss(draw, candidate, *costs) for draw in ALL_PARTITIONS] for candidate in ALL_PARTITIONS])


def least_loss(table, draws):
    """The least expected loss of any partition."""
    at = [int(np.flatnonzero((draw == ALL_PARTITIONS).all(axis=1))[0]) for draw in draws]
    return table[:, at].mean(axis=1).min()


@pytest.mark.parametrize("costs", [None, *COSTS], ids=str)
def test_the_estimate_is_the_best_of_all_partitions(costs):
    if costs is None:
        minimized, table = minimize_vi, all_losses(slow_vi)
    else:
        minimized = partial(minimize_binder, cost_apart=costs[0], cost_together=costs[1])
        table = costs[0] * all_losses(slow_binder, 1.0, 0.0) + costs[1] * all_losses(slow_binder, 0.0, 1.0)
    for seed in range(effort(12, 150)):
        draws = random_draws(seed)
        best = least_loss(table, draws)
        assert minimized(draws, rng=seed).expected_loss == pytest.approx(best, abs=1e-12), seed


@pytest.mark.parametrize("max_clusters", [1, 2, 3])
@pytest.mark.parametrize("loss", LOSSES)
def test_at_most_so_many_clusters(loss, max_clusters):
    minimized, expected = LOSSES[loss]
    few = ALL_PARTITIONS[ALL_PARTITIONS.max(axis=1) < max_clusters]
    for seed in range(effort(3, 20)):
        draws = random_draws(seed)
        found = minimized(draws, max_clusters=max_clusters, rng=seed).expected_loss
        assert found == pytest.approx(min(expected(draws, one) for one in few), abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("loss", LOSSES)
def test_no_draw_and_no_move_of_one_site_is_better(loss, seed):
    (minimized, expected), draws = LOSSES[loss], blurred(seed)
    found = minimized(draws, rng=seed)
    assert found.expected_loss == pytest.approx(expected(draws, found.labels))
    assert found.expected_loss <= min(expected(draws, draw) for draw in draws)
    for site, k in itertools.product(range(0, 60, 7), range(found.labels.max() + 2)):
        moved = found.labels.copy()
        moved[site] = k
        assert expected(draws, moved) >= found.expected_loss - 1e-9


@pytest.mark.parametrize("loss", LOSSES)
def test_estimates_repeat_and_do_not_depend_on_numbers(loss):
    draws = blurred(9)
    found = LOSSES[loss][0](draws, rng=3).labels
    np.testing.assert_array_equal(found, LOSSES[loss][0](scrambled(draws, 0).reshape(4, 10, -1), rng=3).labels)
    np.testing.assert_array_equal(found, by_first_appearance(found), strict=True)


def test_the_search_grows_beyond_the_clusters_of_the_draws():
    draws = np.array([np.arange(90) >> bit & 1 for bit in range(7)])  # every two sites are apart in some draw
    assert minimize_binder(draws, cost_together=100.0, rng=0).labels.tolist() == list(range(90))
    assert minimize_binder(draws, cost_together=100.0, max_clusters=30, rng=0).labels.max() == 29


def test_few_draws_are_used_where_asked_or_where_memory_is_short(monkeypatch):
    draws = [[0, 0, 1, 1], [0, 0, 0, 0], [0, 0, 0, 0]]
    assert minimize_vi(draws, rng=0).labels.tolist() == [0, 0, 0, 0]
    assert minimize_vi(draws, max_draws=1, rng=0).labels.tolist() == [0, 0, 1, 1]
    assert minimize_vi(draws, max_draws=1, rng=0).expected_loss == pytest.approx(2 / 3)  # over all draws
    monkeypatch.setattr(searching, "MAX_TABLE_BYTES", 1)
    assert minimize_vi(draws, rng=0).labels.tolist() == [0, 0, 1, 1]


def tables(loss, draws):
    """Tables of a search over 60 sites, and what turns its loss into the expected one."""
    search, used, limit = searching._make_tables(draws, searching.COSTS[loss](60), 60)
    return search, limit, len(used) * (60 if loss == "vi" else 60 * 59 / 2)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_tables_and_the_running_loss_equal_those_recomputed(loss):
    draws = blurred(5)
    search, limit, scale = tables(loss, draws)
    one = searching._start(search, np.zeros(60, np.int32))
    for start in (None, draws[0], np.arange(10, dtype=np.int32).repeat(6)):
        found, search = searching._descend(search, start, limit, np.random.default_rng(0))
        change = LOSSES[loss][1](draws, search.label) - LOSSES[loss][1](draws, np.zeros(60, int))
        assert (found - one) / scale == pytest.approx(change, abs=1e-9)
        np.testing.assert_array_equal(search.size, np.bincount(search.label, minlength=search.size.size))
        cell = np.zeros(search.cell.shape, int)
        np.add.at(cell, (search.row, search.label.repeat(np.diff(search.first))), 1)
        np.testing.assert_array_equal(search.cell, cell)
        np.testing.assert_array_equal(search.value, search.weight[:, None] * search.cell_gain[cell])


@pytest.mark.parametrize("loss", LOSSES)
def test_a_site_goes_where_the_expected_loss_is_least(loss):
    sources = names_of(source_of("from spinseg.sampler.kernels.least_loss import best_slot"))
    best_slot, remove_site, add_site = (sources[name] for name in ("best_slot", "remove_site", "add_site"))
    draws, stays = blurred(6, n_draws=10), 0
    search, _, scale = tables(loss, draws)
    searching._start(search, draws[0])
    for site in range(60):
        before, to = search.label[site], np.tile(search.label, (search.size.size, 1))
        to[:, site] = range(search.size.size)
        losses = [LOSSES[loss][1](draws, moved) for moved in to]
        best = best_slot(search, site, 1e-9)
        assert losses[best] == pytest.approx(min(losses), abs=1e-12)
        change = remove_site(search, site) + add_site(search, site, best)
        assert change / scale == pytest.approx(losses[best] - losses[before], abs=1e-12)
        stays += best == before
    assert 5 < stays < 55


# --- The credible ball ---


@pytest.mark.parametrize("metric", ["vi", "binder"])
@pytest.mark.parametrize("level", [0.5, 0.63, 0.95, 1.0])
def test_the_credible_ball_equals_one_found_by_trying_every_radius(metric, level):
    distance = slow_vi if metric == "vi" else slow_binder
    for seed in range(25):
        draws, center = random_draws(seed, n_draws=20), random_draws(seed + 50)[0]
        far = np.array([round(distance(draw, center), 9) for draw in draws])
        radius = min(r for r in far if np.mean(far <= r) >= level - 1e-12)
        ball = credible_ball(draws, center, level=level, metric=metric)
        assert ball.radius == pytest.approx(radius, abs=1e-8)
        np.testing.assert_array_equal(ball.center, center)

        inside = [(d, len(set(draw)), tuple(draw)) for d, draw in zip(far, draws.tolist(), strict=True) if d <= radius]
        for bound, wanted in (
            (ball.horizontal, {k for _, k, _ in inside}),
            (ball.upper, {min(k for _, k, _ in inside)}),
            (ball.lower, {max(k for _, k, _ in inside)}),
        ):
            these = [(d, draw) for d, k, draw in inside if k in wanted]
            assert sorted(map(tuple, bound.tolist())) == sorted({z for d, z in these if d == max(these)[0]})


def test_the_ball_does_not_depend_on_numbers():
    draws = random_draws(4, n_draws=30)
    a, b = credible_ball(draws, draws[0]), credible_ball(scrambled(draws, 1), scrambled(draws, 2)[0])
    assert a.radius == pytest.approx(b.radius)
    for name in ("center", "horizontal", "upper", "lower"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


# --- Pairs, counts, numbers ---


def test_probabilities_of_pairs_equal_their_definitions():
    draws = random_draws(8, n_draws=24).reshape(2, 12, -1)
    edges = np.array([[0, 1], [2, 4], [4, 3]])
    flat = draws.reshape(24, -1)
    for site in range(5):
        together = [np.mean([z[site] == z[j] for z in flat]) for j in range(flat.shape[1])]
        np.testing.assert_allclose(co_clustering(draws, site), together)
    apart = [np.mean([z[i] != z[j] for z in flat]) for i, j in edges]
    np.testing.assert_allclose(separation_probability(draws, edges), apart)


def test_separation_does_not_depend_on_how_much_is_compared_at_a_time(monkeypatch):
    draws, edges = random_draws(8, n_draws=24), np.array([[0, 1], [2, 4], [4, 3], [1, 2], [3, 0]])
    apart = [np.mean(draws[:, i] != draws[:, j]) for i, j in edges]
    for n_draws, n_edges in ((5, 2), (1, 1), (24, 5)):
        monkeypatch.setattr(pairs, "BLOCK_DRAWS", n_draws)
        monkeypatch.setattr(pairs, "BLOCK_EDGES", n_edges)
        np.testing.assert_allclose(separation_probability(draws, edges), apart)
    assert np.isnan(separation_probability(draws[:0], edges)).all()


def test_chains_and_estimates_serve_as_their_labels():
    model = ss.Model(ss.SiteGraph(4, [[0, 1], [1, 2]]), ss.PoissonGamma([1, 2, 4, 9]), ss.DirichletProcess(1.0), 0.2)
    chains = ss.sample(model, 20, 2, rng=0)
    draws, edges = chains.labels, model.graph.edges
    found, mode = minimize_vi(chains, rng=0), ss.find_map(model, 1, sweeps=20, rng=0)
    np.testing.assert_array_equal(found.labels, minimize_vi(draws, rng=0).labels)
    np.testing.assert_array_equal(minimize_binder(chains, rng=0).labels, minimize_binder(draws, rng=0).labels)
    np.testing.assert_array_equal(count_clusters(chains), chains.n_clusters)
    np.testing.assert_array_equal(separation_probability(chains, edges), separation_probability(draws, edges))
    np.testing.assert_array_equal(co_clustering(chains), [co_clustering(draws, site) for site in range(4)])
    for partition in (found, mode):
        assert expected_vi(chains, partition) == expected_vi(draws, partition.labels)
        assert expected_binder(chains, partition) == expected_binder(draws, partition.labels)
        assert credible_ball(chains, partition).radius == credible_ball(draws, partition.labels).radius


def test_the_number_of_clusters_of_each_draw():
    draws = np.array([[[0, 0, 0], [0, 5, -5]], [[0, 0, 2], [7, 1, 1]]])
    assert count_clusters(draws).tolist() == [[1, 3], [2, 2]]


# --- Refusals ---


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: minimize_vi(np.empty((0, 3), int)), "labels must hold at least one draw"),
        (lambda: minimize_vi([[0.5, 1.0]]), "labels must be whole numbers"),
        (lambda: minimize_vi([[0, 1]], max_clusters=0), "max_clusters must be a whole number of at least 1"),
        (lambda: minimize_vi([[0, 1]], max_draws=0), "max_draws must be a whole number of at least 1"),
        (lambda: minimize_binder([[0, 1]], cost_apart=0), "cost_apart must be a finite number above 0"),
        (lambda: expected_vi([[0, 1]], [0, 1, 2]), "candidate must have one entry per site"),
        (lambda: credible_ball([[0, 1]], [0, 1], level=1.5), "level must be at most 1"),
        (lambda: credible_ball([[0, 1]], [0, 1], metric="rand"), "metric must be one of"),
        (lambda: co_clustering([[0, 1]], 2), "site must be below 2"),
        (lambda: separation_probability([[0, 1]], [[0, 1], [0, -1]]), r"edges must join sites 0\.\.1: got \[ 0 -1\]"),
        (lambda: separation_probability([[0, 1]], [[0, 99]]), r"edges must join sites 0\.\.1: got \[ 0 99\]"),
        (lambda: separation_probability([[0, 1]], [0, 1]), r"edges must have shape \(n_edges, 2\): got \(2,\)"),
        (lambda: separation_probability([[0, 1]], [[0.0, 1.0]]), "edges must be whole numbers"),
        (lambda: separation_probability(5, [[0, 1]]), r"labels must be draws, shape \(.., n_sites\)"),
    ],
)
def test_wrong_input_is_refused_in_one_line(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("graph", [[[0, 1], [1, 2], [2, 3], [3, 4], [4, 5]], [[0, 1], [0, 2], [0, 3], [4, 5]]])
def test_a_connected_estimate_is_the_best_of_all_connected_partitions(loss, graph):
    graph, rng = ss.SiteGraph(6, graph), np.random.default_rng(2)
    rows = partitions(6)
    rows = rows[[graph.is_connected(row) for row in rows]]
    minimized, expected = LOSSES[loss]
    for _ in range(effort(3, 40)):
        draws = np.array([rng.integers(0, 3, 6) for _ in range(7)])  # these need not be connected
        found = minimized(draws, graph=graph, rng=0)
        assert graph.is_connected(found.labels)
        assert found.expected_loss == pytest.approx(min(expected(draws, row) for row in rows), abs=1e-9)
        few = minimized(draws, graph=graph, max_clusters=3, rng=0)
        fewest = [expected(draws, row) for row in rows if row.max() < 3]
        assert few.labels.max() < 3 and few.expected_loss == pytest.approx(min(fewest), abs=1e-9)


PATH = [[0, 1], [1, 2], [2, 3], [3, 4]]
GRAPHS = {
    "path": PATH,
    "cycle": [*PATH, [4, 0]],
    "star": [[0, 1], [0, 2], [0, 3], [0, 4]],
    "two components": [[0, 1], [1, 2], [3, 4]],
}


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("loss", LOSSES)
def test_parts_that_no_draw_joins_may_need_each_other_to_be_connected(loss, name):
    """One partition alone as the draw: each of its clusters is a part, and most are not connected."""
    graph, rows = ss.SiteGraph(5, GRAPHS[name]), partitions(5)
    connected = rows[[graph.is_connected(row) for row in rows]]
    minimized, expected = LOSSES[loss]
    for row in rows[:: effort(3, 1)]:
        found = minimized([row], graph=graph, rng=0)
        assert graph.is_connected(found.labels)
        assert found.expected_loss == pytest.approx(min(expected([row], one) for one in connected), abs=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_an_estimate_of_many_sites_is_connected_where_the_draws_are_not(loss):
    """Six stripes with two labels in turn: each label is a part of its own."""
    graph, (minimized, expected) = ss.SiteGraph.grid((6, 24)), LOSSES[loss]
    stripes = np.repeat(np.arange(24) // 4, 6).reshape(24, 6).T.ravel()
    draws = np.tile(stripes % 2, (5, 1))
    found = minimized(draws, graph=graph, rng=0)
    assert graph.is_connected(found.labels)
    assert found.expected_loss <= min(expected(draws, stripes), expected(draws, np.zeros(144, int))) + 1e-9


def test_a_site_of_another_part_may_be_the_bridge_of_connected_draws():
    """Sites 0..3 are always together, over another of four ways in each draw; site 8 is always alone.

    One search in two finds the bridge over site 8.
    """
    ways, bridge, others = range(4, 8), 8, range(9, 13)
    edges = [[0, 1], [2, 3], *([site, site + 1] for site in others[:-1]), *([site, others[0]] for site in ways)]
    edges += [[end, site] for site in (*ways, bridge) for end in (1, 2)]
    graph = ss.SiteGraph(13, edges)
    draws = [[0 if site < 4 or site == way else 2 if site == bridge else 1 for site in range(13)] for way in ways]
    bridged = [0 if site < 4 or site == bridge else 1 for site in range(13)]
    losses = [minimize_vi(draws, graph=graph, rng=rng).expected_loss for rng in range(20)]
    assert min(losses) == pytest.approx(expected_vi(draws, bridged), abs=1e-9)


def test_a_limit_below_the_components_of_the_graph_is_refused():
    graph = ss.SiteGraph(5, GRAPHS["two components"])
    assert minimize_vi([[0, 0, 0, 1, 1]], graph=graph, max_clusters=2, rng=0).labels.tolist() == [0, 0, 0, 1, 1]
    with pytest.raises(ss.InvalidInput, match="max_clusters must be at least 2, so that clusters can be connected"):
        minimize_vi([[0, 0, 0, 1, 1]], graph=graph, max_clusters=1)


def test_a_connected_estimate_of_connected_draws_on_a_lattice():
    graph = ss.SiteGraph.grid(effort((5, 5), (9, 9)))
    beta = np.random.default_rng(1).normal(0.4, 0.5, graph.n_edges)
    model = ss.Model(graph, ss.Flat(), ss.TemperedProcess(1.0, power=0.0), beta, connected=True)
    draws = ss.sample(model, effort(20, 60), 2, rng=0).labels
    for minimized, expected in LOSSES.values():
        found = minimized(draws, graph=graph, rng=0)
        assert graph.is_connected(found.labels)
        assert found.expected_loss <= min(expected(draws, draw) for draw in draws.reshape(-1, graph.n_sites)) + 1e-9
        assert found.expected_loss == pytest.approx(expected(draws, found.labels))
        assert np.array_equal(found.labels, minimized(draws, graph=graph, rng=0).labels)
    with pytest.raises(ValueError, match=r"graph must have the \d+ sites of the draws: got 4"):
        minimize_vi(draws, graph=ss.SiteGraph.grid((2, 2)))


@pytest.mark.parametrize("loss", LOSSES)
def test_parts_that_no_draw_joins_are_searched_on_their_own(loss):
    rng, (minimize, expected) = np.random.default_rng(3), LOSSES[loss]
    n_parts, size = 60, 4
    graph = ss.SiteGraph.grid((1, n_parts * size))
    first = size * np.arange(n_parts)
    cuts = rng.random((25, n_parts * size)) < 0.3
    cuts[:, first] = True
    cuts[:, :size] = np.arange(size) == 0  # the first part is one cluster in every draw
    draws = np.cumsum(cuts, axis=1)
    part, group = searching._groups(np.array([by_first_appearance(draw) for draw in draws]))
    assert np.array_equal(by_first_appearance(part), np.repeat(np.arange(n_parts), size))
    assert (group[:size] == -1).all() and np.array_equal(np.unique(group), [-1, 0, 1, 2])
    ways = np.cumsum(list(itertools.product([False, True], repeat=size - 1)), axis=1)
    ways = np.pad(ways, ((0, 0), (1, 0)))  # the connected partitions of a part
    best = np.empty(n_parts * size, np.int64)
    for start in first:
        own = draws[:, start : start + size]
        best[start : start + size] = start + ways[np.argmin([expected(own, way) for way in ways])]
    found = minimize(draws, graph=graph, rng=0)
    assert found.expected_loss == pytest.approx(expected(draws, best), rel=0.003)
    whole = minimize(draws, graph=graph, rng=0, max_clusters=graph.n_sites)  # all parts in one search
    assert found.expected_loss <= whole.expected_loss + 1e-12
