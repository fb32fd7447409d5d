"""Weights of the boundary cues: logistic regression on the training photographs of BSDS300, with its quality held out.

An edge between two sites counts with the length of their boundary; its outcome is the share of annotators for whom the
two sites lie mostly in different segments. Under ../shared/data or SPINSEG_DATA.
"""

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import data_root
from spinseg.evaluation.datasets import Example, bsds
from spinseg.image.adjacency import region_adjacency
from spinseg.image.boundaries import cues
from spinseg.image.features import Codebook, site_histograms
from spinseg.image.pixels import as_picture
from spinseg.image.superpixels import superpixels
from spinseg.presets import PHOTO

Table = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]


def edges_of(example: Example) -> Table:
    """Cues, outcome and weight of the edges of one photograph."""
    picture = as_picture(example.image())
    sites = superpixels(picture, kind=PHOTO.sites, pixels_per_site=PHOTO.pixels_per_site)
    adjacency = region_adjacency(sites)
    words = Codebook.general(PHOTO.n_words).words(picture)
    edges, n_sites = adjacency.graph.edges, adjacency.graph.n_sites
    found = cues(picture, sites, adjacency, site_histograms(words, sites, PHOTO.n_words))
    apart = []
    for annotation in example.annotations():
        votes = np.zeros((n_sites, int(annotation.max()) + 1))
        np.add.at(votes, (sites.ravel(), annotation.ravel()), 1)
        segment = votes.argmax(axis=1)
        apart.append(segment[edges[:, 0]] != segment[edges[:, 1]])
    return found, np.mean(apart, axis=0), adjacency.boundary_length.astype(np.float64)


def joined(tables: list[Table]) -> Table:
    """Edges of several photographs, one after the other."""
    first, second, third = zip(*tables, strict=True)
    return np.concatenate(first), np.concatenate(second), np.concatenate(third)


def fit(found: NDArray[np.float64], outcome: NDArray[np.float64], weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Logistic regression by Newton's method: the constant, and a weight for each cue."""
    x = np.column_stack([np.ones(len(found)), found])
    w = np.zeros(x.shape[1])
    for _ in range(30):
        p = 1 / (1 + np.exp(-x @ w))
        w += np.linalg.solve((x * (weight * p * (1 - p))[:, None]).T @ x, x.T @ (weight * (outcome - p)))
    return w


def average_precision(score: NDArray, outcome: NDArray, weight: NDArray) -> float:
    """Area under precision over recall of the edges that most annotators cut."""
    order = np.argsort(-score)
    hit = (weight * (outcome > 0.5))[order]
    precision = np.cumsum(hit) / np.cumsum(weight[order])
    return float((precision * hit).sum() / hit.sum())


def study() -> dict[str, object]:
    """Weights from all training photographs, and average precision by five-fold cross-validation within them."""
    tables = [edges_of(example) for example in bsds(data_root(), "train")]
    folds = [tables[i::5] for i in range(5)]
    held_out = []
    for i, fold in enumerate(folds):
        w = fit(*joined([table for j, other in enumerate(folds) if j != i for table in other]))
        found, outcome, weight = joined(fold)
        held_out.append(average_precision(found @ w[1:], outcome, weight))
    w = fit(*joined(tables))
    return {
        "photographs": len(tables),
        "LOG_ODDS": "(" + ", ".join(f"{value:.3f}" for value in w) + ")",
        "held-out average precision, mean of 5 folds": float(np.mean(held_out)),
        "least and largest fold": f"{min(held_out):.3f} {max(held_out):.3f}",
    }
