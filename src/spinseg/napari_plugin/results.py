"""A segmentation as layers: its labels at any detail, boundary probability, draws, and what belongs with a place."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinseg._run.progress import Report
from spinseg._validation import counted
from spinseg.image.features import site_sizes
from spinseg.napari_plugin.layers import (
    PROBABILITY,
    LayerData,
    LayerImage,
    boundary_layer,
    labels_layer,
    region_features,
)
from spinseg.partition.numbering import label_image, largest_first
from spinseg.segmentation.report.pictures import N_SHOWN, spread_draws
from spinseg.segmentation.result import Segmentation, SegmentationInterrupted
from spinseg.segmentation.segment import segment
from spinseg.segmentation.verdict import unit_of

DETAILS = tuple(step / 20 for step in range(21))  # that the panel offers
MAX_STACKED = 2**28  # pixels of all draws together


def segment_image(image: LayerImage, preset: str, options: dict[str, Any], seed: int, report: Report) -> "LayerResult":
    """Segment an image; where `report` raises KeyboardInterrupt, with the sweeps that are finished by then."""
    how: dict[str, Any] = {"channel_axis": image.channel_axis, "channel_kind": image.channel_kind, "rng": seed}
    how |= {"progress": report} | options
    try:
        return LayerResult(image, segment(image.array, preset, **how))
    except SegmentationInterrupted as stop:
        return LayerResult(image, stop.segmentation)


class LayerResult:
    """The segmentation of an image, and the layers that show it.

    `detail` is the one that is wanted. `views` has what is known of each detail: the label of every site, and the
    attributes of the layer that shows them; `fetch` completes it.
    """

    def __init__(self, image: LayerImage, segmentation: Segmentation) -> None:
        self.image, self.segmentation = image, segmentation
        self.detail: float = getattr(segmentation.preset, "detail", 0.5)  # of no effect where there is only one
        self.views: dict[float, tuple[NDArray[np.int32], dict[str, Any]]] = {}
        self._add_view(self.detail, segmentation)
        self.verdict = segmentation.verdict

    def _add_view(self, detail: float, found: Segmentation) -> None:
        attributes = {"features": region_features(found.region_rows), "metadata": {"python": found.python_code}}
        self.views[detail] = found.partition, attributes

    @property
    def has_draws(self) -> bool:
        """Whether there are draws: none where sampling was cut short at once."""
        return self.segmentation.chains.labels.size > 0

    @property
    def has_details(self) -> bool:
        """Whether the draws are of every detail."""
        return self.has_draws and self.segmentation.chains.n_components > 1

    def fetch(self) -> Iterator[float]:
        """Make the views of all details, always the one nearest to `detail` next, and yield the detail of each."""
        while missing := [detail for detail in DETAILS if detail not in self.views]:
            nearest = min(missing, key=lambda detail: abs(detail - self.detail))
            self._add_view(nearest, self.segmentation.at(nearest))
            yield nearest

    def layers(self) -> dict[str, LayerData]:
        """All layers by what they show: labels, kinds if regions have any, boundaries and draws if there are draws."""
        found, name, place = self.segmentation, self.image.name, self.image.placement()
        layers = {"labels": self.labels(next(iter(self.views)))}
        if found.kinds is not None:
            kinds = label_image(found.kinds[found.partition], found.sites, start_label=1)
            layers["kinds"] = labels_layer(kinds, f"{name} kinds", visible=False, **place)
        if self.has_draws:
            more = {"metadata": {"boundaries": found.boundary_rows}, **place}
            layers["boundaries"] = boundary_layer(found.boundary_probability, f"{name} boundaries", **more)
            layers["draws"] = self._draws()
        return layers

    def labels(self, detail: float) -> LayerData:
        """The labels at a detail whose view is known."""
        partition, attributes = self.views[detail]
        labels = label_image(partition, self.segmentation.sites, start_label=1)
        return labels_layer(labels, f"{self.image.name} labels", **attributes, **self.image.placement())

    def _draws(self) -> LayerData:
        """Draws spread over details, chains and sweeps, from coarse to fine, along a first axis; hidden at first."""
        found = self.segmentation
        pixels, n_draws = site_sizes(found.sites), max(1, min(N_SHOWN, MAX_STACKED // found.sites.size))
        partitions = [
            largest_first(found.chains.labels[place], pixels) for place in spread_draws(found.chains, n_draws)
        ]
        smallest = np.min_scalar_type(max(int(partition.max()) for partition in partitions) + 1)
        stack = np.stack([label_image(partition, found.sites, 1).astype(smallest) for partition in partitions])
        return labels_layer(stack, f"{self.image.name} draws", visible=False, **self.image.placement("draw"))

    def together(self, place: Sequence[float]) -> LayerData | None:
        """The probability that each place is in the region of this one, given as an index; None outside the image."""
        found, index = self.segmentation, tuple(int(np.rint(coordinate)) for coordinate in place)
        is_within = all(0 <= i < length for i, length in zip(index, found.sites.shape, strict=True))
        if not is_within or found.sites[index] < 0:
            return None
        attributes = {"name": f"{self.image.name} together", **PROBABILITY, "opacity": 0.9, **self.image.placement()}
        return found.co_clustering(*index), attributes, "image"

    def in_words(self, detail: float) -> str:
        """How many regions there are at a detail, and how far to trust those of the segmentation."""
        found, noun = self.segmentation, unit_of(self.segmentation.preset.connected)
        number = counted(int(self.views[detail][0].max()) + 1, noun)
        if detail != next(iter(self.views)):
            return f"{number} at detail {detail:g}, from the same draws."
        stopped = f"Cancelled after {counted(found.chains.n_sweeps, 'sweep')}. " if found.interrupted else ""
        return f"{number}. {stopped}{self.verdict}"
