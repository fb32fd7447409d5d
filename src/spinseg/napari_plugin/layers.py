"""Layers as napari exchanges them: the image that they hold, where other layers lie on it, and how those look."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinseg._validation import invalid
from spinseg.image.io import MAX_PIXELS
from spinseg.image.layout import MAX_CHANNELS, ChannelAxis, ChannelKind, Reading, count_pixels

LayerData = tuple[Any, dict[str, Any], str]  # data, attributes and kind, as `Layer.as_layer_data_tuple` returns them

CHANNEL_LABELS = ("c", "ch", "channel", "channels")
FEATURES = ("area", "share", "probability", "boundary", "kind")  # of a region, which napari shows under the pointer
PROBABILITY = {"contrast_limits": (0, 1), "colormap": "magma"}


class LayerImage(NamedTuple):
    """The image of one or several layers, with the name and the attributes of the first."""

    name: str
    array: NDArray[Any]
    channel_axis: ChannelAxis  # as `segment` takes it
    attributes: dict[str, Any]
    axes: tuple[int, ...]  # of the layer that hold planes, rows and columns
    channel_kind: ChannelKind = "auto"

    def placement(self, *new_axes: str) -> dict[str, Any]:
        """Scale, position, rotation and units of another layer on this image, with new axes of these names first."""
        given, n_new, n_axes = self.attributes, len(new_axes), len(self.attributes["scale"])

        def chosen(name: str, of_new_axis: Any) -> list[Any]:
            return n_new * [of_new_axis] + [given[name][axis] for axis in self.axes]

        def rearranged(matrix: ArrayLike, *more_axes: int) -> NDArray[np.float64]:
            """The rows and columns of a matrix for the axes, where new ones are mapped to themselves."""
            axes = [*self.axes, *more_axes]
            new = np.eye(n_new + len(axes))
            new[n_new:, n_new:] = np.asarray(matrix)[np.ix_(axes, axes)]
            return new

        labels = [*new_axes, *(given["axis_labels"][axis] for axis in self.axes)]
        for i, label in enumerate(labels):
            if label.startswith("-"):  # without a label, napari counts axes from the last, which is "-1"
                labels[i] = str(i - len(labels))
        placed: dict[str, Any] = {"scale": chosen("scale", 1.0), "translate": chosen("translate", 0.0)}
        placed |= {"units": tuple(chosen("units", "pixel")), "axis_labels": tuple(labels)}
        if "rotate" in given:
            placed["rotate"] = rearranged(given["rotate"])
        if np.any(given.get("shear", 0)):
            shear = np.eye(n_axes)
            shear[np.triu_indices(n_axes, 1)] = given["shear"]
            placed["shear"] = rearranged(shear)
        if "affine" in given:
            placed["affine"] = rearranged(given["affine"], n_axes)
        return placed


def image_of(layers: Sequence[LayerData], channel_axis: ChannelAxis = "auto") -> LayerImage:
    """Return the image that layers hold together: several of one shape are its channels.

    "auto" asks napari for the axis of channels, shown as color or labeled so, and then the rule of `as_picture`.
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
    meaning: ChannelKind = "measured" if len(layers) > 1 else "color" if first["rgb"] else "auto"
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
        invalid("the selected layer", "hold one image or volume, with or without channels", array.shape)
    return LayerImage(first["name"], array, axis, first, axes, meaning)


def _channel_axis(shape: tuple[int, ...], channel_axis: ChannelAxis, attributes: dict[str, Any]) -> int | None:
    """The axis of channels of an array that napari does not show in color."""
    if channel_axis != "auto":
        return Reading().laid_out(shape, channel_axis, "the selected layer").channel_axis
    labeled = [axis for axis, label in enumerate(attributes["axis_labels"]) if label.lower() in CHANNEL_LABELS]
    if labeled:
        return labeled[0]
    found = Reading().laid_out(shape, name="the selected layer").channel_axis
    if found is not None and shape[found] > MAX_CHANNELS:
        invalid("channels", "name the axis of the channels of a layer with four axes", tuple(shape))
    return found


def labels_layer(labels: Any, name: str, **more: Any) -> LayerData:
    """Labels, through which the image is seen."""
    return labels, {"name": name, "opacity": 0.5, **more}, "labels"


def boundary_layer(probability: Any, name: str, **more: Any) -> LayerData:
    """Boundary probabilities, which brighten the image; hidden at first."""
    return probability, {"name": name, **PROBABILITY, "blending": "additive", "visible": False, **more}, "image"


def region_features(rows: Sequence[dict[str, Any]], start_label: int = 1) -> dict[str, list[Any]]:
    """The features of a labels layer, from the rows of regions; none where a label has several regions."""
    if any(row["label"] != row["region"] for row in rows):
        return {}
    index = [row["label"] + 1 - start_label for row in rows]
    return {"index": index} | {name: [row[name] for row in rows] for name in FEATURES if name in rows[0]}
