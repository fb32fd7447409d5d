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
DATA = json.loads((GOLDEN / "posteriors.json").read_text())
CONNECTED = json.loads((GOLDEN / "connected.json").read_text())
CONNECTED_NAMES = [
    " ".join(str(m[key]) for key in ("graph", "likelihood", "prior", "power")) for m in CONNECTED["models"]
]
PARTITIONS = np.array(DATA["partitions"])
NAMES = [f"{model['likelihood']}, {model['prior']}" for model in DATA["models"]]


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
    return ss.Model(ss.SiteGraph(DATA["n_sites"], DATA["edges"]), likelihood, prior, DATA["beta"])


def test_there_are_32_models():
    assert len(DATA["models"]) == 32


def log_probabilities(entry):
    return np.array([-np.inf if x is None else x for x in entry["log_probability"]])


@pytest.mark.parametrize("entry", DATA["models"], ids=NAMES)
def test_log_posterior(entry):
    model, known = build(entry), log_probabilities(entry)
    ours = np.array([model.log_posterior(row) for row in PARTITIONS])
    np.testing.assert_array_equal(np.isinf(ours), np.isinf(known))
    legal = np.isfinite(known)
    np.testing.assert_allclose(np.diff(ours[legal]), np.diff(known[legal]), rtol=0, atol=1e-9)
    np.testing.assert_allclose(np.logaddexp.reduce(known[legal]), 0, atol=1e-9)


def assert_frequencies(model, known, chains):
    """The shares of partitions in chains agree with their log probabilities; errors are those of batches of 400."""
    batches = chains.labels.reshape(-1, 400, chains.labels.shape[-1])
    shares = np.array([exact.frequencies(batch) / 400 for batch in batches])
    error = shares.std(axis=0, ddof=1) / np.sqrt(len(shares))
    assert not shares[:, np.isinf(known)].any()
    common = np.exp(known) > 0.005
    z = (shares.mean(axis=0) - np.exp(known))[common] / np.maximum(error[common], 1e-12)
    assert np.abs(z).max() < 7, z  # of about 1,000 cells in all, with the errors estimated from 40 batches or more


@pytest.mark.parametrize("entry", DATA["models"][:: effort(9, 1)], ids=NAMES[:: effort(9, 1)])
def test_long_run_frequencies(entry):
    model = build(entry)
    chains = ss.sample(model, sweeps=effort(2_400, 20_400), chains=8, moves="auto", burn_in=400, rng=7)
    assert_frequencies(model, log_probabilities(entry), chains)


def connected_log_probabilities(entry):
    """Of each of all partitions, in the order of `exact.partitions`; -inf where the entry does not list it."""
    codes = exact.code(exact.partitions(CONNECTED["n_sites"]))
    known = np.full(codes.size, -np.inf)
    listed = np.array(entry["partitions"]), np.array(entry["log_probability"])
    known[np.searchsorted(codes, exact.code(listed[0]))] = listed[1]
    return known


def test_there_are_80_models_of_connected_partitions():
    assert len(CONNECTED["models"]) == 80


@pytest.mark.parametrize("entry", CONNECTED["models"][:: effort(3, 1)], ids=CONNECTED_NAMES[:: effort(3, 1)])
def test_log_posterior_of_connected_partitions(entry):
    model, known = build(entry), connected_log_probabilities(entry)
    ours = exact.log_probabilities(model)
    np.testing.assert_array_equal(np.isinf(ours), np.isinf(known))
    legal = np.isfinite(known)
    np.testing.assert_allclose(np.diff(ours[legal]), np.diff(known[legal]), rtol=0, atol=1e-9)


@pytest.mark.parametrize("entry", CONNECTED["models"][:: effort(17, 1)], ids=CONNECTED_NAMES[:: effort(17, 1)])
def test_long_run_frequencies_of_connected_partitions(entry):
    model = build(entry)
    chains = ss.sample(model, sweeps=effort(2_400, 20_400), chains=8, burn_in=400, rng=7)
    assert_frequencies(model, connected_log_probabilities(entry), chains)
