"""Fit of the weights of the boundary cues to training nuclei of BBBC038 and to rendered scenes, with cross-validation.

As `python -m studies boundaries`, for the preset `Measured`: with its sites, and a network that was trained without
the image. Scenes are other ones than those that the networks learned from. A scene has half the weight of an image of
nuclei. The weights are written to spinseg/image/data/boundary_weights.npz, and those of each fold beside its network.
"""

from dataclasses import replace

import numpy as np

from spinseg.image.io import read_image
from spinseg.image.picture import as_picture
from spinseg.segmentation.presets.measured import Measured
from studies.evaluation.datasets import data_root
from studies.questions.boundaries import ORIGINAL, WEIGHTS_PATH, Edges, edges_with, fit, quality, write_weights
from studies.questions.held_out import FOLDER, N_FOLDS, network_of
from studies.scenes import RENDERERS, render

N_SCENES, SHAPE = 105, (256, 256)
SCENE = "scene"
UNUSED = ("apart",)  # eigenvectors say nothing where many regions touch nothing alike, and take long


def training_edges() -> list[Edges]:
    """Return the edges of all training nuclei and of some scenes."""
    nuclei, found = data_root() / "nuclei" / "train", list[Edges]()
    for i, path in enumerate(sorted((nuclei / "images").glob("*.png"))):
        labels = read_image(nuclei / "labels" / path.name).astype(np.int64)
        found.append(edges_of(read_image(path), labels, ORIGINAL, i % N_FOLDS))
    kinds = list(RENDERERS)
    for i in range(N_SCENES):
        scene = render(kinds[i % len(kinds)], SHAPE, np.random.default_rng([8, i]))
        found.append(edges_of(scene.image, scene.labels, SCENE, i // len(kinds) % N_FOLDS))
    return [edges for edges in found if edges.adjacency.n_edges]


def edges_of(image: np.ndarray, labels: np.ndarray, version: str, fold: int) -> Edges:
    """Return cues and outcomes of the edges of an image, with the network of a fold."""
    image = image[..., :3] if image.ndim == 3 and image.shape[-1] == 4 else image
    usual = Measured()
    preset = replace(usual, evidence=replace(usual.evidence, network=network_of(fold, "measured")))
    return edges_with(preset, as_picture(image, channel_axis=-1 if image.ndim == 3 else None), [labels], version, fold)


def study() -> dict[str, object]:
    """Fit and write the weights; return the quality of each stage in cross-validation."""
    images = training_edges()
    fitted = fit(images, without=UNUSED)
    stored, *by_fold = (
        {f"measured {name}": np.asarray(values) for name, values in weights.items()}
        for weights in (fitted.weights, *fitted.by_fold)
    )
    write_weights(stored, by_fold)
    figures: dict[str, object] = {"sites": f"{np.mean([each.adjacency.n_sites for each in images]):.0f} an image"}
    for version in (ORIGINAL, SCENE):
        figures[f"{version}, local cues alone"] = quality(images, fitted.first, version)
        figures[version] = quality(images, fitted.log_odds, version)
    return figures | {"written to": f"{WEIGHTS_PATH}, {FOLDER}"}
