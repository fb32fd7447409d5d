"""Roles of channels: those whose outlines count, and those in which each object has one bright blob."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinseg._validation import invalid
from spinseg.image.blobs import find_blobs
from spinseg.image.components import ENDS
from spinseg.image.layout import Mask
from spinseg.image.picture import Picture
from spinseg.image.working import WorkingCopy

Channels = int | Sequence[int]  # as `segment` takes them

NUMBERS = "be a channel, or several, counted from 0"
NO_BLOB = "no bright blob was found in {channels}: outlines alone decide. Check the number of the channel."


class Roles(NamedTuple):
    """The channels whose outlines count, and those with one bright blob for each object; None if not given.

    A single channel is a number, several are a tuple.
    """

    outlines: int | tuple[int, ...] | None = None
    one_each: int | tuple[int, ...] | None = None

    @classmethod
    def of(cls, outlines: Channels | None, one_each: Channels | None) -> "Roles":
        """The roles that arguments of `segment` give; refuse whatever can be refused without an image."""
        found = cls(_checked("outlines", outlines), _checked("one_each", one_each))
        if both := set(_listed(found.outlines)) & set(_listed(found.one_each)):
            invalid("one_each", "name other channels than the outlines", min(both))
        return found

    def seen(self, picture: Picture) -> Picture:
        """The image of the channels whose outlines count, by default of all without another role."""
        if self == Roles():
            return picture
        n_channels = picture.n_channels
        if picture.is_color and not np.ptp(picture.codes, axis=-1).any():
            name = "outlines" if self.one_each is None else "one_each"
            invalid(name, "name channels of an image that has several", "a gray image")
        for name, channels in self._asdict().items():
            if beyond := [channel for channel in _listed(channels) if channel >= n_channels]:
                invalid(name, f"be among the channels 0 to {n_channels - 1} of this image", beyond[0])
        others = [channel for channel in range(n_channels) if channel not in _listed(self.one_each)]
        if not others:
            invalid("one_each", "leave a channel for the outlines", self.one_each)
        return _with_channels(picture, _listed(self.outlines) or others)

    def as_judged(self, picture: Picture) -> Picture:
        """The image by which a preset is chosen: channels with roles were measured, whatever they look like."""
        return picture if self == Roles() else replace(picture, channel_kind="measured")

    def blobs_of(self, picture: Picture) -> Picture:
        """The image of the channels with one bright blob for each object."""
        return _with_channels(picture, _listed(self.one_each))

    def with_markers(self, seeds: NDArray[np.int64] | None, image: WorkingCopy) -> NDArray[np.int64] | None:
        """Seeds of the pixels of the original, and the core of each blob in a copy of it as a seed of its own.

        A blob is left out where a seed overlaps it.
        """
        blobs = find_blobs(_brightness(image.picture.values, image.inside), image.inside)
        if not blobs.numbers.any():
            channels = ", ".join(map(str, _listed(self.one_each)))
            warnings.warn(NO_BLOB.format(channels=f"channel {channels}"), stacklevel=4)
            return seeds
        numbers, cores = (image.to_original(each, outside=0) for each in blobs)
        markers = np.where(cores, numbers, 0).astype(np.int64)
        if seeds is None:
            return markers
        markers[np.isin(numbers, numbers[seeds > 0])] = 0
        return np.where(markers > 0, markers + seeds.max(), seeds)


def _checked(name: str, channels: Channels | None) -> int | tuple[int, ...] | None:
    """Channels as a number, or as a tuple of several different ones."""
    if channels is None:
        return None
    numbers = list(channels) if isinstance(channels, (Sequence, np.ndarray)) else [channels]
    is_channel = [isinstance(each, (int, np.integer)) and not isinstance(each, bool) and each >= 0 for each in numbers]
    if not numbers or not all(is_channel):
        invalid(name, NUMBERS, channels)
    plain = tuple(dict.fromkeys(int(each) for each in numbers))
    return plain if len(plain) > 1 else plain[0]


def _listed(channels: int | tuple[int, ...] | None) -> tuple[int, ...]:
    """Channels as a tuple."""
    return () if channels is None else (channels,) if isinstance(channels, int) else channels


def _with_channels(picture: Picture, channels: Sequence[int]) -> Picture:
    """The image with some of its channels; one alone is gray."""
    codes = np.ascontiguousarray(picture.codes[..., list(channels)])
    is_one = codes.shape[-1] == 1
    codes = np.repeat(codes, 3, axis=-1) if is_one else codes
    return replace(picture, codes=codes, channel_kind="color" if is_one else "measured")


def _brightness(values: NDArray[np.float32], inside: Mask | None) -> NDArray[np.float32]:
    """The mean of channels, each stretched so that nearly all values inside are between 0 and 1."""
    seen = values.reshape(-1, values.shape[-1]) if inside is None else values[inside]
    low, high = np.percentile(seen, ENDS, axis=0)
    return ((values - low) / np.maximum(high - low, 1e-6)).mean(axis=-1).astype(np.float32)
