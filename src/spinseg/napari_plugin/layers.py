"""Layers as napari exchanges them: the image that they hold, where other layers lie on it, and how those look."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinseg._validation import invalid
from spinseg.image.io import MAX_PIXELS
from spinseg.image.layout import MAX_CHANNELS, ChannelAxis, Reading, count_pixels

LayerData = tuple[Any, dict[str, Any], str]  # data, attributes and kind, as `Layer.as_layer_data_tuple` returns them

CHANNEL_LABELS = ("c", "ch", "channel", "channels")
FEATURES = ("area", "share", "probability", "boundary")  # of a region, which napari shows under the pointer
LABELS = {"opacity": 0.5}
PROBABILITY = {"contrast_limits": (0, 1), "colormap": "magma"}


class LayerImage(NamedTuple):
    """The image of one or several layers, with the name and the attributes of the first."""

    name: str
    array: NDArray[Any]
    channel_axis: ChannelAxis  # as `segment` takes it
    attributes: dict[str, Any]
    axes: tuple[int, ...]  # of the layer that hold planes, rows and columns

    def placement(self, *new_axes: str) -> dict[str, Any]:
        """The attributes that put another layer onto this image, with new axes of these names before its own."""
        return placement_of(self.attributes, (*new_axes, *self.axes))


def image_of(layers: Sequence[LayerData], channel_axis: ChannelAxis = "auto") -> LayerImage:
    """Return the image that layers hold together: several of one shape are its channels.

    With "auto" the axis of channels is the one that napari shows as color or that is labeled so, and otherwise the rule
    of `as_picture` decides; of four axes the last must then be short.
    """
    if not layers:
        invalid("the selected layer", "be an image", "no layer")
    for _, attributes, kind in layers:
        if kind != "image":
            invalid("the selected layer", "be an image", f"{attributes['name']}, of the kind {kind}")
    arrays = [data[0] if attributes["multiscale"] else data for data, attributes, _ in layers]
    shapes = [tuple(array.shape) for array in arrays]
    if count_pixels(shapes[0]) > MAX_PIXELS:
        rule = f"have at most {MAX_PIXELS:,} pixels; spinseg.segment_large takes more"
        invalid("the selected layer", rule, shapes[0])
    _, first, _ = layers[0]
    axis: ChannelAxis
    if len(layers) > 1:
        if len(set(shapes)) > 1 or any(attributes["rgb"] for _, attributes, _ in layers):
            invalid("selected layers", "have one shape and no color, since each is a channel", shapes)
        array, axis = np.stack([np.asarray(array) for array in arrays], axis=-1), -1
        axes = tuple(range(len(shapes[0])))
    elif first["rgb"]:
        array, axis, axes = np.asarray(arrays[0]), "auto", tuple(range(len(shapes[0]) - 1))
    else:
        array, axis = np.asarray(arrays[0]), _channel_axis(shapes[0], channel_axis, first)
        axes = tuple(other for other in range(len(shapes[0])) if other != axis)
    if len(axes) not in (2, 3):
        invalid("the selected layer", "hold one picture or volume, with or without channels", array.shape)
    return LayerImage(first["name"], array, axis, first, axes)


def _channel_axis(shape: tuple[int, ...], channel_axis: ChannelAxis, attributes: dict[str, Any]) -> int | None:
    """The axis of channels of an array that napari does not show in color."""
    if channel_axis != "auto":
        return Reading().laid_out(shape, channel_axis, "the selected layer").channel_axis
    labeled = [axis for axis, label in enumerate(attributes["axis_labels"]) if label.lower() in CHANNEL_LABELS]
    if labeled:
        return labeled[0]
    found = Reading().laid_out(shape, name="the selected layer").channel_axis
    if found is not None and shape[found] > MAX_CHANNELS:
        invalid("channels", "be told of a layer of four axes: which of them holds channels", tuple(shape))
    return found


def placement_of(attributes: dict[str, Any], axes: Sequence[int | str]) -> dict[str, Any]:
    """Scale, position, rotation and units of a layer for another one that has these axes of it, or new ones by name.

    Examples
    --------
    >>> of_picture = {"scale": [2.0, 3.0], "translate": [5.0, 0.0], "axis_labels": ("y", "x"), "units": ("um", "um")}
    >>> of_stack = placement_of(of_picture, ("draw", 0, 1))
    >>> of_stack["scale"], of_stack["axis_labels"]
    ([1.0, 2.0, 3.0], ('draw', 'y', 'x'))
    """

    def chosen(name: str, of_new_axis: Any) -> list[Any]:
        return [of_new_axis if isinstance(axis, str) else attributes[name][axis] for axis in axes]

    placed: dict[str, Any] = {"scale": chosen("scale", 1.0), "translate": chosen("translate", 0.0)}
    placed |= {"units": tuple(chosen("units", "pixel")), "axis_labels": _labels(attributes["axis_labels"], axes)}
    if "rotate" in attributes:
        placed["rotate"] = _rearranged(attributes["rotate"], axes)
    if np.any(attributes.get("shear", 0)):
        n_axes = len(attributes["scale"])
        shear = np.eye(n_axes)
        shear[np.triu_indices(n_axes, 1)] = attributes["shear"]
        placed["shear"] = _rearranged(shear, axes)
    if "affine" in attributes:
        placed["affine"] = _rearranged(attributes["affine"], (*axes, len(attributes["scale"])))
    return placed


def _labels(labels: Sequence[str], axes: Sequence[int | str]) -> tuple[str, ...]:
    """The labels of axes; where a layer has none, napari counts them from the last, which is "-1"."""
    chosen = [axis if isinstance(axis, str) else labels[axis] for axis in axes]
    return tuple(str(i - len(axes)) if label.startswith("-") else label for i, label in enumerate(chosen))


def _rearranged(matrix: ArrayLike, axes: Sequence[int | str]) -> NDArray[np.float64]:
    """The rows and columns of a matrix for these axes, where new ones are mapped to themselves."""
    new = np.eye(len(axes))
    places = [place for place, axis in enumerate(axes) if not isinstance(axis, str)]
    old = [axis for axis in axes if not isinstance(axis, str)]
    new[np.ix_(places, places)] = np.asarray(matrix)[np.ix_(old, old)]
    return new


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
