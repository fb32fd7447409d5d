"""Tissues of a brain that `segment` finds, beside methods that are given the number.

The volume is the ICBM 152 template (T1), and the truth is the most probable of its maps: gray matter, white matter, or
neither, which is fluid. Scores are adjusted Rand indices of the voxels inside the brain.
"""

import time

import nibabel
import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from skimage.filters import threshold_multiotsu
from sklearn.cluster import KMeans
from sklearn.mixture import GaussianMixture

import spinseg as ss
from studies.evaluation.datasets import data_root
from studies.evaluation.metrics import adjusted_rand_index

N_TISSUES = 3
EVERY = 20  # voxel that the mixture is fitted to
NOISE = (0.0, 0.05, 0.1)  # standard deviations, of the brightest voxel, of what is added


def brain() -> tuple[NDArray[np.float32], NDArray[np.bool_], NDArray[np.intp]]:
    """The intensities, from 0 to 1, which voxels are inside, and the tissue of each."""
    folder = data_root() / "extra" / "mni152_brain"

    def volume(name: str) -> NDArray[np.float32]:
        values = nibabel.load(folder / f"mni_icbm152_{name}_tal_nlin_sym_09a_converted.nii.gz").get_fdata()
        return (values / values.max()).astype(np.float32)

    t1, gray, white = (volume(name) for name in ("t1", "gm", "wm"))
    inside = ndimage.binary_fill_holes(ndimage.binary_closing(gray + white > 0.5, iterations=3))
    fluid = np.maximum(1 - gray - white, 0)
    box = ndimage.find_objects(inside.astype(np.uint8))[0]
    return t1[box], inside[box], np.argmax([fluid, gray, white], axis=0)[box]


def study() -> dict[str, object]:
    """Return the adjusted Rand index of each method, without noise and with some."""
    t1, inside, truth = brain()
    figures: dict[str, object] = {"voxels inside": int(inside.sum())}
    for noise in NOISE:
        noisy = (t1 + np.random.default_rng(0).normal(0, noise, t1.shape)).astype(np.float32)
        values = noisy[inside][:, None]
        mixture = GaussianMixture(N_TISSUES, n_init=2, random_state=0).fit(values[::EVERY])
        found = {
            "k-means, 3": KMeans(N_TISSUES, n_init=3, random_state=0).fit_predict(values),
            "Gaussian mixture, 3": mixture.predict(values),
            "Otsu, 3": np.digitize(values[:, 0], threshold_multiotsu(values[:, 0], N_TISSUES)),
        }
        start = time.perf_counter()
        ours = ss.segment(noisy, "classes", mask=inside, channel_axis=None, rng=0)
        figures[f"noise {noise}, seconds of classes"] = time.perf_counter() - start
        found[f"classes, which found {ours.n_clusters}"] = ours.labels[inside]
        for name, labels in found.items():
            figures[f"noise {noise}, {name}"] = adjusted_rand_index(labels, truth[inside])
    return figures
