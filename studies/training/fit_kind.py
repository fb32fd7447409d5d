"""Fit what tells photographs from measured images: weights of what the network for measured images sees in an image.

    python -m studies.training.fit_kind training_data
    cp training_data/kind_weights.npz src/spinseg/image/data/

A photograph is one of BSDS300 train; a measured image is one of nuclei (BBBC038) or a rendered scene. Their parts, gray
versions, and photographs changed as under water are images, too. A logistic regression with a ridge penalty is fitted
to features of the network of the package and stored; photographs count as much as the others, and so do the groups of
each. Before, five fits without the images i of a fold, i % 5, judge them by features of the network that was trained
without them (`measured_foldN.npz` of `train_boundary_net.py`), and a table is printed.
"""

import io
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.optimize import minimize
from scipy.special import expit

from spinseg.image.boundary.kinds import kind_features
from spinseg.image.boundary.network import BoundaryNetwork
from studies.questions.held_out import N_FOLDS, network_of
from studies.scenes import RENDERERS, in_three_channels, render

SCENES = range(0, 2100, 12)  # of `render_scenes.py`, which has the same random seeds
SHAPE = (320, 320)
SHARES = 0.3, 0.6  # of the sides of an image, that a part of it has
PENALTY = 0.005  # of the squared weights of standardized features, beside the mean loss

Pixels = np.ndarray
Fitted = tuple[np.ndarray, float]


def stretched(image: Pixels) -> Pixels:
    """Return an image in three channels that fill the range of 8 bits, as the package shows it to the network."""
    return np.rint(255 * in_three_channels(np.atleast_3d(image).astype(np.float64))).astype(np.uint8)


def part(rgb: Pixels, rng: np.random.Generator) -> Pixels:
    """Return a random part of an image."""
    spans = []
    for length in rgb.shape[:2]:
        size = max(min(length, 64), int(length * rng.uniform(*SHARES)))
        start = int(rng.integers(length - size + 1))
        spans.append(slice(start, start + size))
    return rgb[tuple(spans)]


def under_water(rgb: Pixels, rng: np.random.Generator) -> Pixels:
    """Return a photograph with little red, with haze that grows up or down, and out of focus."""
    cast = rng.uniform((0.1, 0.5, 0.6), (0.5, 1, 1))
    haze = np.linspace(rng.uniform(0, 0.5), rng.uniform(0.3, 0.8), len(rgb))[:: rng.choice([-1, 1]), None, None]
    seen = Image.fromarray(np.rint(cast * (rgb * (1 - haze) + 255 * rng.uniform(0.3, 0.8) * haze)).astype(np.uint8))
    small = [int(side / rng.uniform(1, 3)) for side in seen.size]
    return np.asarray(seen.resize(small, Image.Resampling.BOX).resize(seen.size, Image.Resampling.BILINEAR))


def images(folder: Path) -> Iterator[tuple[str, int, Pixels]]:
    """Yield the group of each image, its number and its pixels."""
    stored, packed = np.load(folder / "photographs.npz"), np.load(folder / "nuclei.npz")
    for i in range(sum(name.startswith("jpeg") for name in stored.files)):
        rgb = np.asarray(Image.open(io.BytesIO(stored[f"jpeg{i}"].tobytes())).convert("RGB"))
        yield "photographs", i, rgb
        yield "photographs under water", i, under_water(rgb, np.random.default_rng([11, 3, i]))
    for i in range(sum(name.startswith("image") for name in packed.files)):
        yield f"nuclei, {packed[f'group{i}']}", i, packed[f"image{i}"]
    for i in SCENES:
        yield "scenes", i, render(list(RENDERERS)[i % len(RENDERERS)], SHAPE, np.random.default_rng([7, i])).image


def versions(task: tuple[str, int, Pixels]) -> list[tuple[str, str, Pixels]]:
    """Return an image, its gray version and a part of it, stretched, each with its group and what it is."""
    name, i, image = task
    rng = np.random.default_rng([12, i])
    shown = {"": image, "in gray": np.atleast_3d(image).mean(axis=-1), "a part": part(image, rng)}
    return [(name, how, stretched(each)) for how, each in shown.items()]


def features(fold: int | None, task: tuple[str, int, Pixels]) -> np.ndarray:
    """Return the features of the versions of an image in the network of a fold, or of the package."""
    network = network_of(fold, "measured") or BoundaryNetwork.fitted("measured")
    return np.stack([kind_features(rgb, network) for _, _, rgb in versions(task)])


def fit(x: np.ndarray, group: np.ndarray) -> Fitted:
    """Return weights of features, and a constant, of the log-odds of a photograph."""
    names, index, counts = np.unique(group, return_inverse=True, return_counts=True)
    is_photograph = np.char.startswith(names, "photographs")
    share = (np.where(is_photograph, 0.5 / is_photograph.sum(), 0.5 / (~is_photograph).sum()) / counts)[index]
    mean, deviation = x.mean(axis=0), x.std(axis=0) + 1e-6
    z, sign = (x - mean) / deviation, np.where(is_photograph, 1.0, -1.0)[index]

    def loss(w: np.ndarray) -> tuple[float, np.ndarray]:
        margin = sign * (z @ w[1:] + w[0])
        slope = -share * sign * expit(-margin)
        value = share @ np.logaddexp(0, -margin) + PENALTY * w[1:] @ w[1:]
        return value, np.concatenate([[slope.sum()], z.T @ slope + 2 * PENALTY * w[1:]])

    w = minimize(loss, np.zeros(x.shape[1] + 1), jac=True, method="L-BFGS-B", options={"maxiter": 5000}).x
    return w[1:] / deviation, float(w[0] - (w[1:] / deviation) @ mean)


def main() -> None:
    """Judge images by fits without them, and store the fit to all."""
    folder = Path(sys.argv[1])
    tasks = list(images(folder))
    number = np.repeat([i for _, i, _ in tasks], len(versions(tasks[0])))
    group, how = np.array([(name, how) for task in tasks for name, how, _ in versions(task)]).T
    fold, odds = number % N_FOLDS, np.empty(len(number))
    with ProcessPoolExecutor() as pool:
        for k in range(N_FOLDS):
            x = np.concatenate(list(pool.map(partial(features, k), tasks, chunksize=8)))
            weight, bias = fit(x[fold != k], group[fold != k])
            odds[fold == k] = x[fold == k] @ weight + bias
        x = np.concatenate(list(pool.map(partial(features, None), tasks, chunksize=8)))
    weight, bias = fit(x, group)
    print("recognized, and the four least log-odds for what they are")
    right = np.where(np.char.startswith(group, "photographs"), odds, -odds)
    for name, version in dict.fromkeys(zip(group.tolist(), how.tolist(), strict=True)):
        own = np.sort(right[(group == name) & (how == version)])
        print(f"{name} {version}: {(own > 0).sum()} of {own.size}; {' '.join(f'{each:.2f}' for each in own[:4])}")
    np.savez(folder / "kind_weights.npz", weight=weight.astype(np.float32), bias=np.float32(bias))


if __name__ == "__main__":
    main()
