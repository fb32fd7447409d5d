"""Layers as napari exchanges them, and how they look."""

from collections.abc import Sequence
from typing import Any

LayerData = tuple[Any, dict[str, Any], str]  # data, attributes and kind, as `Layer.as_layer_data_tuple` returns them

FEATURES = ("area", "share", "probability", "boundary")  # of a region, which napari shows under the pointer
LABELS = {"opacity": 0.5}
PROBABILITY = {"contrast_limits": (0, 1), "colormap": "magma"}


def labels_layer(labels: Any, name: str, **more: Any) -> LayerData:
    """Labels, through which the picture is seen."""
    return labels, {"name": name, **LABELS, **more}, "labels"


def boundary_layer(probability: Any, name: str, **more: Any) -> LayerData:
    """Boundary probabilities, which brighten the picture; hidden at first."""
    return probability, {"name": name, **PROBABILITY, "blending": "additive", "visible": False, **more}, "image"


def together_layer(probability: Any, name: str, **more: Any) -> LayerData:
    """The probability that places belong together with one of them, through which the picture shines a little."""
    return probability, {"name": name, **PROBABILITY, "opacity": 0.9, **more}, "image"


def region_features(rows: Sequence[dict[str, Any]], start_label: int = 1) -> dict[str, list[Any]]:
    """The features of a labels layer, from the rows of regions; none where a label has several regions.

    The rows count labels from `start_label`, and the layer from 1.

    Examples
    --------
    >>> row = {"region": 1, "label": 1, "area": 9, "share": 1.0, "probability": 0.9, "boundary": 0.0, "bbox": []}
    >>> region_features([row])
    {'index': [1], 'area': [9], 'share': [1.0], 'probability': [0.9], 'boundary': [0.0]}
    """
    if any(row["label"] != row["region"] for row in rows):
        return {}
    index = [row["label"] + 1 - start_label for row in rows]
    return {"index": index} | {name: [row[name] for row in rows] for name in FEATURES}
