"""A move is added in one place: all that names, counts, plans, tests and interprets moves follows from one table."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import exact
import model_cases
import spinseg as ss
from effort import effort, exhaustive
from kernel_source import replaced, text_of
from sources import SOURCE, nodes
from spinseg.sampler.kernels.moves import MOVES, PROPOSALS
from spinseg.sampler.plan import MAX_SIMILAR, _smallest, similar_sites

TESTS = Path(__file__).parents[1]
TABLE = SOURCE / "sampler" / "kernels" / "moves.py"

# A move of its own: the sites of two clusters are dealt to two new ones by coins, so that the proposal cancels.
TOY = """
import cython
from cython.cimports.libc import math
from spinseg.sampler.kernels.clusters import change_if_replaced, pool, update_slot
from spinseg.sampler.kernels.reallocation import change_if_reallocated, finish, gather_sites
from spinseg.sampler.kernels.state import N_CLUSTERS, Plan, Random, State, Target

@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def deal(target: Target, state: State, plan: Plan, rng: Random):
    label, slot_of, spin, member, k = state.label, state.slot_of, state.spin, state.member, state.counters[N_CLUSTERS]
    log_u = math.log(1.0 - rng.random())
    i, j = rng.below(label.shape[0]), rng.below(label.shape[0])
    if label[i] == label[j]:
        return -1, False
    a, b = slot_of[label[i]], slot_of[label[j]]
    n_sites = gather_sites(state, b, gather_sites(state, a, 0))
    for u in range(spin.shape[0]):
        spin[u] = 0
    for q in range(n_sites):
        u = member[q]
        side = 0 if u == i else 1 if u == j else rng.below(2)
        spin[u] = side + 1
        update_slot(target, state, k + side, 1, pool(target, state, q, q + 1), 1)
    change = change_if_replaced(target, state, (a, b, b), 2, 2) + change_if_reallocated(target, state, n_sites)
    accepted = log_u < plan.inv_temperature * change
    finish(state, (a, b, b), 2, 2, n_sites, change, accepted)
    return 0, accepted
"""
# What is written in the table for it: (where, that with the addition).
ADDED = [
    ("sweep import sweep\n", "sweep import sweep\nfrom spinseg.sampler.kernels.toy import deal\n"),
    ("MOVES = {\n", 'MOVES = {\n    "deal": Move(("deal",), lambda purpose, n_sites: 4, connected=False),\n'),
    ("SPLIT_OR_MERGE, REGROUP, ", "DEAL, SPLIT_OR_MERGE, REGROUP, "),
    (
        "    if move == REGROUP:\n",
        "    if move == DEAL:\n        return deal(target, state, plan, rng)\n    if move == REGROUP:\n",
    ),
]
SCRIPT = """
import sys
from spinseg.sampler import kernels
kernels.__path__.insert(0, {folder!r})
sys.path.insert(0, {tests!r})
import exact, model_cases, numpy as np, spinseg as ss
from kernel_source import source_of
from spinseg.sampler.kernels import moves

graph, kept = exact.graph(4)
likelihood = model_cases.likelihoods(4)["histogram"]
for prior in (ss.DirichletProcess(1.3), ss.ExchangeablePrior(lambda sizes: -1.5 * float(sizes[0] - sizes[-1]))):
    model = ss.Model(graph, likelihood, prior, 2 * exact.MIXED[kept])
    print(exact.iterated(model, n_draws=1_000, seed=1, **exact.iterations(connected=False)["deal"])[0])
chains = ss.sample(model, 20, 1, rng=0)
rows = chains.labels[0, :: 5]
assert 0 <= chains.acceptance["deal"][0] <= 1 and list(chains.acceptance) == list(moves.PROPOSALS)
assert np.allclose([model.log_posterior(row) for row in rows], chains.log_posterior[0, :: 5])
assert "def deal(" in source_of("from spinseg.sampler.kernels.moves import run_iterations")
assert ss.find_map(model, 1, sweeps=5, rng=0).labels.size == 4
"""


def run_with_toy(toy: str, folder: Path) -> list[float]:
    """The p-values of the toy move, under a prior with tables and one without, in a sampler that has it."""
    table = text_of("moves")
    for where, added in ADDED:
        table = replaced(table, where, added)
    (folder / "moves.py").write_text(table)
    (folder / "toy.py").write_text(toy)
    script = SCRIPT.format(folder=str(folder), tests=str(TESTS))
    environment = {**os.environ, "SPINSEG_INTERPRETED": "1"}
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, env=environment)
    assert run.returncode == 0, run.stderr
    return [float(line) for line in run.stdout.split()]


def test_a_new_move_needs_its_file_and_its_entries_in_the_table(tmp_path):
    assert min(run_with_toy(TOY, tmp_path)) > 1e-6


@exhaustive
def test_a_new_move_that_is_wrong_is_caught(tmp_path):
    wrong = replaced(TOY, "log_u < plan.inv_temperature * change", "log_u < 0.0 * change")
    assert max(run_with_toy(wrong, tmp_path)) < 1e-6


def names_in(node: ast.AST) -> set[str]:
    """Moves and kinds of moves that are elements of a literal, keys, or keywords of a call."""
    inner = getattr(node, "elts", None) or getattr(node, "keys", None) or []
    found = {str(getattr(item, "value", getattr(item, "id", ""))) for item in inner}
    found |= {str(keyword.arg) for keyword in getattr(node, "keywords", [])}
    moves = {name.upper() for name in MOVES}
    return found & {*MOVES, *PROPOSALS, *moves}


@pytest.mark.parametrize("path", [p for p in SOURCE.rglob("*.py") if p != TABLE], ids=lambda p: p.stem)
def test_moves_are_listed_nowhere_else(path):
    listed = [names_in(node) for node in nodes(path)]
    assert max(map(len, listed)) < 2


def test_the_table_holds_every_list():
    listed = [names_in(node) for node in nodes(TABLE)]
    assert sum(names >= MOVES.keys() for names in listed) == 1
    assert set(PROPOSALS) == {name for move in MOVES.values() for name in move.proposals}


@exhaustive
@pytest.mark.parametrize("limits", [{}, {"min_size": 2}, {"max_size": 4}], ids=str)
@pytest.mark.parametrize("where", ["anywhere", "connected", "with seeds", "with kinds"])
@pytest.mark.parametrize("move", ["sweep", *MOVES])
def test_each_move_is_exact_under_a_prior_without_tables(move, where, limits):
    connected, seeds = where != "anywhere", [1, 0, 0, 2, 1] if where == "with seeds" else None
    kinds = ss.DirichletProcess(0.8) if where == "with kinds" else None
    if move not in ("sweep", *exact.moves_of(connected=connected, kinds=kinds is not None)):
        pytest.skip("the move is for other posteriors")
    graph, kept = exact.graph(5)
    prior = ss.ExchangeablePrior(lambda sizes: -0.7 * float(sizes[0] - sizes[-1]), **limits)
    likelihood = model_cases.likelihoods(5)["product"]
    model = ss.Model(graph, likelihood, prior, exact.MIXED[kept], connected=connected, seeds=seeds, kinds=kinds)
    how = {"lam": 1.0} if move == "sweep" else {"lam": "none", move: 3}
    assert exact.iterated(model, n_draws=effort(500, 2_000), seed=1, **how)[0] > 1e-6


@pytest.mark.parametrize("n", [1, 2, 3, 7, 20])
def test_ties_of_similar_sites_go_to_the_first(n):
    """Whatever the processor: regroupings draw their anchors from similar sites."""
    values = np.random.default_rng(0).integers(0, 4, (50, 20)).astype(float)
    expected = [np.sort(np.argsort(row, kind="stable")[:n]) for row in values]
    np.testing.assert_array_equal(_smallest(values, n), expected)


def test_similar_sites_are_the_nearest_in_features_and_never_the_site_itself():
    n_sites = MAX_SIMILAR + 60
    values = np.random.default_rng(1).permutation(n_sites).astype(float)
    model = ss.Model(ss.SiteGraph(n_sites, []), ss.DiagonalGaussian(values[:, None]), ss.DirichletProcess(1.0))
    found = similar_sites(model)
    assert found.shape == (n_sites, MAX_SIMILAR)
    for site, row in enumerate(found):
        distance = np.abs(values - values[site])
        distance[site] = np.inf
        assert distance[row].max() <= np.sort(distance)[MAX_SIMILAR]
        assert site not in row and (np.diff(row.astype(int)) > 0).all()
