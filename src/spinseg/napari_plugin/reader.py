"""What napari reads: folders that `Segmentation.save` and `segment_large` wrote, and the bundled photographs."""

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from spinseg._errors import needing
from spinseg._validation import invalid
from spinseg.image.io import read_image
from spinseg.napari_plugin.layers import LayerData, boundary_layer, labels_layer, region_features
from spinseg.pictures import PICTURES
from spinseg.segmentation.large.files import open_labels


def get_reader(path: str | Sequence[str]) -> Callable[[str], list[LayerData]] | None:
    """The function that reads a folder, or the result.json in it; None where the folder is none of ours."""
    if not isinstance(path, str):  # several files, to be stacked
        return None
    folder = _folder(path)
    has_labels = any((folder / name).exists() for name in ("labels.tif", "labels.zarr"))
    return read_results if has_labels and (folder / "result.json").is_file() else None


def read_results(path: str) -> list[LayerData]:
    """Labels and boundary probability; of a volume only the labels, since one plane of the other is saved.

    The labels count from 1, whatever they were saved with, and result.json is in their metadata.
    """
    folder = _folder(path)
    try:
        summary = json.loads((folder / "result.json").read_text(encoding="utf-8"))
        if (folder / "labels.zarr").exists():
            return _large_layers(folder, summary)
        first = summary["settings"]["start_label"]
        labels = read_image(folder / "labels.tif").astype(np.int32) + 1 - first
        more = {"features": region_features(summary["regions"], first), "metadata": {"spinseg": summary}}
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError):
        invalid("result.json", "be one that spinseg wrote", str(folder / "result.json"))
    layers = [labels_layer(labels, f"{folder.name} labels", **more)]
    if labels.ndim == 2 and (folder / "boundary_probability.png").exists():
        probability = read_image(folder / "boundary_probability.png").astype(np.float32) / 255
        layers.append(boundary_layer(probability, f"{folder.name} boundaries"))
    return layers


def _large_layers(folder: Path, summary: dict[str, Any]) -> list[LayerData]:
    """What `segment_large` wrote, as Dask arrays: napari reads the parts that it shows."""
    with needing("labels of images larger than memory need Zarr: pip install 'spinseg[zarr]'"):
        labels, boundaries = (open_labels(folder / f"{name}.zarr") for name in ("labels", "boundary_probability"))
    return [
        labels_layer(labels, f"{folder.name} labels", metadata={"spinseg": summary}),
        boundary_layer(boundaries, f"{folder.name} boundaries", contrast_limits=(0, 255)),
    ]


def _folder(path: str) -> Path:
    """The folder of results, for its path or that of a file in it."""
    return Path(path) if Path(path).is_dir() else Path(path).parent


def _photograph(name: str) -> list[LayerData]:
    """Return the bundled photograph of this name, with its credit line."""
    with Image.open(PICTURES[name].path) as image:
        pixels = np.asarray(image)
    return [(pixels, {"name": name, "rgb": True, "metadata": {"credit": PICTURES[name].credit}}, "image")]


# What napari calls for its samples.
coffee = partial(_photograph, "coffee")
cat = partial(_photograph, "cat")
astronaut = partial(_photograph, "astronaut")
