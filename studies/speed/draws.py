"""Digests of draws for fixed seeds, which stay the same on one machine where a change leaves the arithmetic alone."""

import hashlib

import numpy as np
from numpy.typing import NDArray

import spinseg as ss
from spinseg.segmentation.presets.preset import Preset
from studies.speed.segment import photograph


def digest(labels: NDArray[np.integer]) -> str:
    """Twelve digits that tell two arrays of labels apart."""
    return hashlib.blake2b(labels.astype(np.int64).tobytes(), digest_size=6).hexdigest()


def study() -> dict[str, str]:
    """Sample posteriors of each likelihood with `sample`, and segment a photograph with each preset."""
    rng, graph = np.random.default_rng(0), ss.SiteGraph.grid((12, 12))
    likelihoods = {
        "histograms": ss.DirichletMultinomial(rng.poisson(2, (144, 20))),
        "Gaussian": ss.Gaussian(rng.normal(size=(144, 2))),
        "diagonal Gaussian": ss.DiagonalGaussian(rng.normal(size=(144, 3))),
        "Poisson": ss.PoissonGamma(rng.poisson(3, (144, 2))),
        "none": ss.Flat(),
    }
    found = {}
    for name, likelihood in likelihoods.items():
        for connected in (False, True):
            model = ss.Model(graph, likelihood, ss.DirichletProcess(1.0), beta=0.5, connected=connected)
            chains = ss.sample(model, sweeps=150, chains=2, rng=0)
            found[f"sample, {name}{', connected' if connected else ''}"] = digest(chains.labels)
    image = photograph()[:161, :241]
    for preset in Preset.known:
        chains = ss.segment(image, preset, sweeps=60, rng=0).chains
        found[f"segment, {preset}"] = digest(chains.labels)
    return found
