"""Against answers that were computed apart from this project."""

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest

import exact
import spinseg as ss
from effort import effort

GOLDEN = Path(os.environ.get("SPINSEG_GOLDEN", Path(__file__).parents[3] / "shared" / "golden"))
if not GOLDEN.exists():
    pytest.skip(f"{GOLDEN} is not here: set SPINSEG_GOLDEN to the folder of answers", allow_module_level=True)
FREE, CONNECTED = (json.loads((GOLDEN / f"{name}.json").read_text()) for name in ("posteriors", "connected"))


def build(entry):
    """The model that an entry describes."""
    data = entry["data"]
    likelihood = {
        "dirichlet_multinomial": lambda: ss.DirichletMultinomial(data["counts"], data["phi"], data["count_weight"]),
        "diagonal_gaussian": lambda: ss.DiagonalGaussian(
            data["y"], mean=data["m0"], kappa=data["kappa0"], shape=data["shape"], rate=data["rate"]
        ),
        "poisson_gamma": lambda: ss.PoissonGamma(data["y"], shape=data["shape"], rate=data["rate"]),
        "flat": lambda: ss.Flat(),
    }[entry["likelihood"]]()
    name, *settings = entry["prior"].split()
    number = {key: float(value) for key, value in (setting.split("=") for setting in settings)}
    limits = {key: int(value) for key, value in number.items() if re.fullmatch("min_size|max_size", key)}
    prior = {
        "potts": lambda: ss.Potts(int(number["K"]), **limits),
        "finite_dirichlet": lambda: ss.FiniteDirichlet(int(number["K"]), number["a"], **limits),
        "dirichlet_process": lambda: ss.DirichletProcess(number["alpha"], **limits),
        "pitman_yor": lambda: ss.PitmanYor(number["alpha"], number["theta"], **limits),
    }[name]()
    if "graph" in entry:
        graph = ss.SiteGraph(CONNECTED["n_sites"], entry["edges"])
        return ss.Model(graph, likelihood, prior, entry["beta"], connected=True, power=entry["power"])
    return ss.Model(ss.SiteGraph(FREE["n_sites"], FREE["edges"]), likelihood, prior, FREE["beta"])


def log_probabilities(entry):
    """Of all partitions, in the order of `exact.partitions`; -inf where the entry does not list one, or says None."""
    connected = "graph" in entry
    codes = exact.code(exact.partitions((CONNECTED if connected else FREE)["n_sites"]))
    known = np.full(codes.size, -np.inf)
    listed = exact.code(np.array((entry if connected else FREE)["partitions"]))
    known[np.searchsorted(codes, listed)] = [-np.inf if x is None else x for x in entry["log_probability"]]
    return known


def some(free, connected):
    """One in `free` of the 32 models of all partitions and one in `connected` of the 80 of connected ones."""
    assert (len(FREE["models"]), len(CONNECTED["models"])) == (32, 80)
    entries = FREE["models"][::free] + CONNECTED["models"][::connected]
    names = [" ".join(str(m.get(key, "")) for key in ("graph", "likelihood", "prior", "power")) for m in entries]
    return pytest.mark.parametrize("entry", entries, ids=names)


@some(1, effort(3, 1))
def test_log_posterior(entry):
    ours, known = exact.log_probabilities(build(entry)), log_probabilities(entry)
    np.testing.assert_array_equal(np.isinf(ours), np.isinf(known))
    legal = np.isfinite(known)
    np.testing.assert_allclose(np.diff(ours[legal]), np.diff(known[legal]), rtol=0, atol=1e-9)
    np.testing.assert_allclose(np.logaddexp.reduce(known[legal]), 0, atol=1e-9)


@some(effort(9, 1), effort(17, 1))
def test_long_run_frequencies(entry):
    """The shares of partitions in chains agree with their log probabilities; errors are those of batches of 400."""
    known = log_probabilities(entry)
    chains = ss.sample(build(entry), sweeps=effort(2_400, 20_400), chains=8, moves="auto", burn_in=400, rng=7)
    batches = chains.labels.reshape(-1, 400, chains.labels.shape[-1])
    shares = np.array([exact.frequencies(batch) / 400 for batch in batches])
    error = shares.std(axis=0, ddof=1) / np.sqrt(len(shares))
    assert not shares[:, np.isinf(known)].any()
    common = np.exp(known) > 0.005
    z = (shares.mean(axis=0) - np.exp(known))[common] / np.maximum(error[common], 1e-12)
    assert np.abs(z).max() < 7, z  # of about 1,000 cells in all, with the errors estimated from 40 batches or more
