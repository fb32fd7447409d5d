"""Pack training images and their annotations into two files, for the machine that trains.

    python -m studies.training.pack_images FOLDER

photographs.npz holds the JPEGs of BSDS300 train as they are, and the label images of all annotators; nuclei.npz the
training nuclei of BBBC038, stretched as the network sees them, and their labels. Together they have about 40 MB. The
data are in ../shared/data or SPINSEG_DATA, are for research use, and must not be committed.
"""

import sys
from pathlib import Path

import numpy as np

from spinseg.image.io import read_image
from studies.evaluation.datasets import bsds, data_root, get_dataset
from studies.scenes import in_three_channels


def main() -> None:
    """Write FOLDER/photographs.npz and FOLDER/nuclei.npz."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, np.ndarray] = {}
    for i, example in enumerate(bsds(data_root(), "train")):
        arrays[f"jpeg{i}"] = np.frombuffer(example.image_path.read_bytes(), np.uint8)
        labels = np.stack(example.annotations())
        assert labels.min() >= 0
        arrays[f"labels{i}"] = labels.astype(np.uint16)
    np.savez_compressed(folder / "photographs.npz", **arrays)
    arrays = {}
    for i, example in enumerate(get_dataset("nuclei", data_root(), "train")):
        image = np.atleast_3d(read_image(example.image_path))[..., :3]
        arrays[f"image{i}"] = np.rint(255 * in_three_channels(image.astype(np.float64))).astype(np.uint8)
        arrays[f"labels{i}"] = read_image(example.label_paths[0]).astype(np.int16)
        arrays[f"group{i}"] = np.array(example.group)
    np.savez_compressed(folder / "nuclei.npz", **arrays)


if __name__ == "__main__":
    main()
