"""`segment`: from an image to its segmentation."""

from __future__ import annotations

import os
import time
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spinseg._run.progress import Report, reporting, stage_of
from spinseg._validation import check_int, invalid, seed_of
from spinseg.image.features import site_sizes
from spinseg.image.layout import ChannelAxis, ChannelKind, IntensityRange
from spinseg.image.picture import Picture
from spinseg.image.roles import Channels
from spinseg.image.seeds import Seeds
from spinseg.sampler.chains import SamplingInterrupted
from spinseg.segmentation.presets.measured import Auto
from spinseg.segmentation.presets.preset import Preset, chosen_preset
from spinseg.segmentation.problem import prepare
from spinseg.segmentation.result import Segmentation, SegmentationInterrupted
from spinseg.segmentation.schedule import Schedule, sample_posterior


def segment(
    image: Picture | ArrayLike | str | os.PathLike[str],
    preset: Preset | str = Auto(),
    *,
    mask: ArrayLike | str | os.PathLike[str] | None = None,
    seeds: Seeds | None = None,
    outlines: Channels | None = None,
    one_each: Channels | None = None,
    channel_axis: ChannelAxis = "auto",
    channel_kind: ChannelKind = "auto",
    intensity_range: IntensityRange | None = None,
    start_label: int = 1,
    chains: int | None = None,
    sweeps: int | None = None,
    seconds: float | None = None,
    rng: int | np.random.Generator | None = None,
    workers: int | None = None,
    progress: bool | Report | None = None,
    **options: Any,
) -> Segmentation:
    """Segment an image and quantify the uncertainty.

    You get a label for every pixel, the probability of a boundary at every pixel, and the posterior that both come
    from. The number of regions is inferred. Only `image` is required.

    Parameters
    ----------
    image : array, Picture or path
        An array of shape (H, W), (H, W, C) or a volume, of any number type, an image of Pillow, or a file that holds
        one: PNG, JPEG, GIF, WebP, BMP, JPEG 2000, TIFF, NPY, a folder of Zarr, and with an extra NIfTI. It is never
        changed. Pixels that are masked in a NumPy masked array or fully transparent are outside. `seg.read_as` says how
        it was read.
    preset : Auto, Photo, Measured, Objects, Classes, Paper, another Preset, or its name, such as "classes"
        `Photo` finds connected regions in photographs, and `Measured` in microscopy, rasters, scans and materials;
        `Auto` takes the one that suits the image, and `seg.preset` says which. `Classes` finds kinds of tissue or
        material, in images and volumes of any channels: a class may lie in many places. `Paper` is the model and the
        sampler of Xu, Caron & Doucet.
    mask : array of bool or path, optional
        Where to segment, in the image's shape. Pixels that are masked or transparent in the image stay outside.
    seeds : array of int, mapping or path, optional
        Pixels with the same positive number lie in one region, and pixels with different numbers in different regions:
        in every draw, and in `labels` at every level of detail. Other pixels are free. Give a label image of the
        image's shape, a file that holds one, or the pixels of each seed, {1: [(row, column), ..], 2: ..}. Seeds require
        a preset with connected clusters, such as `Photo` or `Measured`.
    outlines : int or sequence of int, optional
        The channels whose outlines the regions follow, such as that of membranes, counted from 0 in the order of the
        image. Other channels are measured and shown, but not analyzed.
    one_each : int or sequence of int, optional
        The channels in which each object has one bright blob, such as a nucleus. No region holds two blobs, in any
        draw, and no blob is cut in two at its core. A region without a blob is background, or an object whose blob was
        not found: `seg.regions["marked"]` says which regions have one. Outlines come from all other channels unless
        `outlines` names some. A blob that a seed overlaps does not mark a region of its own. Requires a preset with
        connected clusters. Channels with roles are measured: `Auto` takes `Measured`.
    channel_axis : int, None or "auto"
        The axis of the channels, in the order of the array or of the file; None for an image without. "auto" uses the
        names of the axes in a file, or else their lengths, as `as_picture` explains.
    channel_kind : {"auto", "color", "measured"}
        Whether three channels are red, green and blue (sRGB), or measured on their own, as those of a microscope or a
        satellite. "auto" asks the file, or else the type and the range of the numbers. Measured channels, two or more,
        are weighed by their noise, and analyzed in three components.
    intensity_range : (float, float), optional
        Black and white levels. By default 0 and 255 for uint8; for other types 0 and 1, 255 or 65535, or the smallest
        and the largest number, by the rule in `as_picture`.
    start_label : {0, 1}
        The label of the largest cluster; pixels outside have one less. `seg.partition` and `seg.sites` always count
        from 0.
    chains, sweeps : int, optional
        Number of chains, and of sweeps of each. The first half of the sweeps is burn-in. By default `Photo` and
        `Measured` discard 40 sweeps and go on, to 400 at most, until they have converged or the probabilities are twice
        as accurate as needed; one chain runs to the end. They run `chains` chains for each of twelve levels of detail.
        `Classes` makes 120 sweeps and `Paper` 1000.
    seconds : float, optional
        About how long the call may take, instead of `sweeps`: what reading and preparing the image leave is spent on
        sampling, though each chain makes 4 sweeps, and outlines are drawn after it. Draws of more than 256 MB end it
        earlier. The number of sweeps then depends on the machine; `seg.python_code` has it and repeats the result.
    rng : int, Generator or None
        The random seed. The same seed gives the same segmentation on one machine with the same versions. If it is None,
        a seed is drawn and kept in `seg.seed`.
    workers
        As in `sample`.
    progress : bool or callable, optional
        As in `sample`. A callable is also called at the start of each stage, from reading on, with the name of the
        stage and the number of sweeps that are expected.
    **options
        Options of the preset: `segment(image, detail=0.9)` is `segment(image, Auto(detail=0.9))`.

    Returns
    -------
    Segmentation
        Labels, probabilities and the posterior, with `plot`, `save` and `at`.

    Raises
    ------
    InvalidInput
        For wrong input. For an unknown option the message lists those of the preset.
    SegmentationInterrupted
        On Ctrl-C while sampling. Its `segmentation` is what the finished sweeps give.

    Examples
    --------
    >>> import numpy as np
    >>> import spinseg as ss
    >>> image = np.zeros((60, 90))
    >>> image[10:50, 20:60] = 1
    >>> ss.segment(image, rng=0).n_clusters
    2
    """
    preset = chosen_preset(preset, options, segment)
    schedule = Schedule.of(preset, chains, sweeps, seconds)
    if isinstance(start_label, float) or check_int("start_label", start_label, at_least=0) > 1:
        invalid("start_label", "be 0 or 1", start_label)
    if workers is not None:
        check_int("workers", workers, at_least=1)
    seed, began = seed_of(rng), time.monotonic()
    with reporting(progress) as report:
        stage = stage_of(report)
        stage("reading")
        how_read = (channel_axis, intensity_range, seeds, channel_kind, stage, outlines, one_each)
        problem = prepare(image, preset, mask, *how_read)
        found = partial(problem.segmentation, seed=seed, schedule=schedule, start_label=int(start_label))
        area = site_sizes(problem.sites)
        how: dict[str, Any] = {"workers": workers, "progress": report, "began": began}
        try:
            drawn = sample_posterior(problem.model, problem.preset, schedule, seed, area, **how)
        except SamplingInterrupted as stop:
            raise SegmentationInterrupted(found(stop.chains, interrupted=True)) from None
        stage("drawing outlines")
        return found(drawn)
