"""Render scenes to train on, with all processors: run it on the machine that trains, since noise does not compress.

    OMP_NUM_THREADS=1 python -m studies.training.render_scenes FOLDER [NUMBER]

It writes FOLDER/scenes.npz, with scenes of random kinds (`studies.scenes`), in two readings each.
"""

import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

from studies.scenes import random_kind, render
from studies.training.crops import UNKNOWN, inside_and_depth
from studies.training.train_evidence_net import in_readings

N_SCENES = 3000
SHAPE = (320, 320)


def _scene(i: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng([7, i])
    scene = render(random_kind(rng), SHAPE, rng)
    unknown = np.full((2, *SHAPE), UNKNOWN, np.uint8)
    about = unknown if scene.objects is None else inside_and_depth(scene.labels, scene.objects)
    return in_readings(scene.image)[np.sort(rng.permutation(3)[:2])], scene.labels.astype(np.int16), about


def main() -> None:
    """Write FOLDER/scenes.npz."""
    number = int(sys.argv[2]) if len(sys.argv) > 2 else N_SCENES
    with ProcessPoolExecutor() as pool:
        images, labels, about = zip(*pool.map(_scene, range(number), chunksize=10), strict=True)
    arrays = {"images": np.stack(images), "labels": np.stack(labels), "about": np.stack(about)}
    np.savez(Path(sys.argv[1]) / "scenes.npz", **arrays)


if __name__ == "__main__":
    main()
