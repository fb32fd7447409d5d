"""Files of small datasets: photographs, and label images as datasets store them; folders are made."""

import numpy as np
from PIL import Image
from scipy.io import savemat


def new(path):
    """The path, whose folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def write_photograph(path, labels):
    """Write a noisy picture whose brightness follows labels."""
    noise = np.random.default_rng(labels.sum()).integers(0, 20, (*labels.shape, 3))
    Image.fromarray(np.clip(60 * labels[..., None] + 40 + noise, 0, 255).astype(np.uint8)).save(new(path))


def write_png(path, numbers, dtype=np.uint8):
    """Write a label image of gray levels."""
    Image.fromarray(np.asarray(numbers, dtype)).save(new(path))


def write_mat(path, *images):
    """Write label images as BSDS500 has them: a cell array of structs."""
    cells = np.empty((1, len(images)), object)
    cells[0] = [{"Segmentation": np.asarray(image) + np.uint16(1)} for image in images]
    savemat(new(path), {"groundTruth": cells}, do_compression=True)  # whose checksum tells of flipped bits


def halves(edge, shape=(30, 40)):
    """Labels 0 and 1 left and right of a column."""
    return np.broadcast_to(np.arange(shape[1]) >= edge, shape).astype(np.uint8)
