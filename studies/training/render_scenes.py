"""Render scenes to train on, with all processors: run it on the machine that trains, since noise does not compress.

    OMP_NUM_THREADS=1 python -m studies.training.render_scenes FOLDER

It writes FOLDER/scenes.npz, with as many scenes of each kind (`studies.scenes`), stretched as the network sees them.
"""

import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

from studies.scenes import RENDERERS, in_three_channels, render

N_SCENES = 2100
SHAPE = (320, 320)


def _scene(i: int) -> tuple[np.ndarray, np.ndarray]:
    scene = render(list(RENDERERS)[i % len(RENDERERS)], SHAPE, np.random.default_rng([7, i]))
    return np.rint(255 * in_three_channels(scene.image)).astype(np.uint8), scene.labels.astype(np.int16)


def main() -> None:
    """Write FOLDER/scenes.npz."""
    with ProcessPoolExecutor() as pool:
        images, labels = zip(*pool.map(_scene, range(N_SCENES), chunksize=10), strict=True)
    np.savez(Path(sys.argv[1]) / "scenes.npz", images=np.stack(images), labels=np.stack(labels))


if __name__ == "__main__":
    main()
