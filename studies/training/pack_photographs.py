"""Pack the training photographs of BSDS300 and their annotations into one file, for the machine that trains.

    python -m studies.training.pack_photographs FOLDER

The file holds the JPEGs as they are, and the label images of all annotators; about 25 MB. The data are in
../shared/data or SPINSEG_DATA, are for research use, and must not be committed.
"""

import sys
from pathlib import Path

import numpy as np

from studies.evaluation.datasets import bsds, data_root


def main() -> None:
    """Write FOLDER/photographs.npz."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, np.ndarray] = {}
    for i, example in enumerate(bsds(data_root(), "train")):
        arrays[f"jpeg{i}"] = np.frombuffer(example.image_path.read_bytes(), np.uint8)
        labels = np.stack(example.annotations())
        assert labels.min() >= 0
        arrays[f"labels{i}"] = labels.astype(np.uint16)
    np.savez_compressed(folder / "photographs.npz", **arrays)


if __name__ == "__main__":
    main()
