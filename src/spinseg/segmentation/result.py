"""What a segmentation is made of, and the files it is saved in."""

import json
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from spinseg._validation import check_choice, invalid
from spinseg.image.features import site_means
from spinseg.image.io import MOST_LABELS_PNG, write_labels_png, write_labels_tif, write_png
from spinseg.image.picture import ChannelAxis, Picture
from spinseg.image.render import label_colours, overlay
from spinseg.inference.bonds import DataDriven
from spinseg.inference.chains import Chains
from spinseg.inference.diagnostics import Diagnostics, diagnose
from spinseg.inference.regions import cohesion, regions_of
from spinseg.model.posterior import Model
from spinseg.model.priors import PartitionPrior
from spinseg.parallel.atomic import atomic_write, printable, say
from spinseg.segmentation.report import report
from spinseg.segmentation.settings import Settings

MOST_DRAWS = 500  # of a chain that the probabilities of regions are computed from
WHERE_IT_ENDED = "found.chains.labels[:, -1]"
FILES = ("labels.tif", "labels.png", "overlay.png", "boundary_probability.png", "report.html", "result.json")
VERSIONS = ("spinseg", "numpy", "scipy", "numba", "scikit-image")


@dataclass(frozen=True, eq=False)
class Segmentation:
    """A segmentation and the posterior it came from.

    Attributes
    ----------
    labels : int32, the image's shape
        The cluster of every pixel, 0..k-1; -1 outside the mask.
    sites : int32, the image's shape
        The site of every pixel; -1 outside the mask.
    boundary_probability : float32, the image's shape
        How often, over the draws, a pixel was separated from one beside it.
    partition : (n_sites,) int32
        The cluster of every site: the partition that `estimate` asks for, made into regions where asked.
    model, chains
        The posterior, and what was drawn from it.
    settings, seed
        What to call `segment` with to repeat it.
    separation : (n_edges,) float64
        How often, over the draws, the two sites of each edge of the graph lay in different clusters.
    source : str or None
        The file that the picture was read from.
    interrupted : bool
        Whether sampling was cut short.
    earlier : tuple of str
        Lines of Python that come before, where the chains went on from those of another segmentation, `found`.
    """

    labels: NDArray[np.int32] = field(repr=False)
    sites: NDArray[np.int32] = field(repr=False)
    boundary_probability: NDArray[np.float32] = field(repr=False)
    partition: NDArray[np.int32] = field(repr=False)
    separation: NDArray[np.float64] = field(repr=False)
    model: Model = field(repr=False)
    chains: Chains = field(repr=False)
    settings: Settings = field(repr=False)
    seed: int
    picture: Picture = field(repr=False)
    channel_axis: ChannelAxis
    source: str | None
    mask: str | None
    interrupted: bool = False
    earlier: tuple[str, ...] = ()

    @property
    def n_clusters(self) -> int:
        """Number of clusters of `labels`."""
        return int(self.partition.max()) + 1

    @cached_property
    def regions(self) -> list[dict[str, Any]]:
        """The connected pieces of the clusters, largest first, one row each.

        `area` in pixels, `share` of the picture, `colour` the mean in sRGB, `box` from the first row and column to
        those after the last, `cluster`, `probability` how often two of its sites share a cluster, and `boundary` how
        often, on average along its outline, there is a boundary.
        """
        graph = self.model.graph
        region_of_site = regions_of(self.partition, graph)
        image = np.append(region_of_site, np.int32(-1))[self.sites]
        areas = np.bincount(image[image >= 0])
        n_pixels = int(areas.sum())
        colours = np.rint(site_means(self.picture.rgb, image)).astype(int)
        boxes = ndimage.find_objects(image + 1)
        n_draws = self.chains.labels.shape[1]
        drawn = n_draws > 0
        together = cohesion(self.chains.labels[:, :: max(1, n_draws // MOST_DRAWS)], region_of_site)
        outlines = self._outlines(region_of_site)
        first_site = np.unique(region_of_site, return_index=True)[1]
        rows = [
            {
                "area": int(areas[r]),
                "share": round(float(areas[r] / n_pixels), 6),
                "colour": "#{:02x}{:02x}{:02x}".format(*colours[r]),
                "box": [int(side.start) for side in boxes[r]] + [int(side.stop) for side in boxes[r]],
                "cluster": int(self.partition[first_site[r]]),
                "probability": round(float(together[r]), 6) if drawn else None,
                "boundary": round(float(outlines[r]), 6) if drawn and np.isfinite(outlines[r]) else None,
            }
            for r in np.argsort(-areas, kind="stable")
        ]
        return [{"region": i, **row} for i, row in enumerate(rows)]

    def _outlines(self, region_of_site: NDArray[np.int32]) -> NDArray[np.float64]:
        """Mean boundary probability along the outline of each region; NaN for one that touches no other."""
        ends = region_of_site[self.model.graph.edges]
        across = ends[:, 0] != ends[:, 1]
        n_regions = int(region_of_site.max()) + 1
        sums = sum(np.bincount(ends[across, side], self.separation[across], n_regions) for side in (0, 1))
        counts = sum(np.bincount(ends[across, side], minlength=n_regions) for side in (0, 1))
        return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)

    @cached_property
    def diagnostics(self) -> Diagnostics:
        """How well the chains agree."""
        return diagnose(self.chains, self.model.graph)

    @property
    def verdict(self) -> str:
        """Whether the chains agree, in plain language."""
        start = self.settings.init
        if not isinstance(start, str) or start not in ("greedy", "coarse") or self.chains.n_chains < 2:
            return self.diagnostics.verdict
        return f"{self.diagnostics.verdict} All of them started from one place, so other modes may have been missed."

    @property
    def repeat(self) -> str:
        """The Python that gives the same segmentation, if it is not interrupted: a line, and those `earlier`."""
        written = {"init": WHERE_IT_ENDED} if self.earlier else {}
        line = repeating(self.settings, self.seed, self.source, self.channel_axis, self.mask, written)
        return "\n".join([*self.earlier, f"found = {line}"]) if self.earlier else line

    def summary(self) -> dict[str, Any]:
        """Everything but the pictures, in types that JSON knows."""
        counts = np.bincount(self.chains.n_clusters[:, self.chains.burn_in :].ravel())
        return {
            "source": self.source,
            "mask": self.mask,
            "shape": list(self.labels.shape),
            "n_clusters": self.n_clusters,
            "n_regions": len(self.regions),
            "n_sites": self.model.graph.n_sites,
            "log_posterior": self.chains.best_log_posterior,
            "sweeps_done": self.chains.n_sweeps,
            "n_clusters_posterior": {str(k): round(counts[k] / counts.sum(), 6) for k in np.flatnonzero(counts)},
            "interrupted": self.interrupted,
            "agree": self.diagnostics.agree,
            "verdict": self.verdict,
            "python": self.repeat,
            "seed": self.seed,
            "settings": plain_settings(self.settings),
            "left_out": self.left_out,
            "versions": {"python": platform.python_version(), **{name: version(name) for name in VERSIONS}},
            "regions": self.regions,
        }

    @cached_property
    def _plane(self) -> Any:
        """The index of what is shown: of a picture all of it, of a volume the middle one of its fullest planes."""
        if self.labels.ndim == 2:
            return ...
        full = np.count_nonzero(self.labels >= 0, axis=(1, 2))
        fullest = np.flatnonzero(full == full.max())
        return int(fullest[fullest.size // 2])

    @property
    def left_out(self) -> dict[str, str]:
        """The files that `save` cannot write, and why."""
        if int(self.labels[self._plane].max()) < MOST_LABELS_PNG:
            return {}
        why = f"a PNG holds {MOST_LABELS_PNG:,} labels at most, and there are {self.n_clusters:,}"
        return {"labels.png": f"{why}; labels.tif has them all"}

    def save(self, folder: str | os.PathLike[str], names: Sequence[str] = FILES, *, overwrite: bool = False) -> None:
        """Write labels.tif, labels.png, overlay.png, boundary_probability.png, report.html and result.json, or some.

        Each is there whole or not at all, and result.json comes last. labels.tif holds `labels`, in 16 bits where they
        fit; labels.png holds them as indices into a palette, 255 outside the mask; boundary_probability.png runs from
        0 to 255. Of a volume, all but labels.tif show the middle plane. More than 65,535 labels do not fit into
        labels.png: it is left out, and standard error and result.json tell of it.

        Files that are there are kept, and nothing is written, unless `overwrite` is true.

        Raises
        ------
        FileExistsError
            Where the folder holds one of the files, and `overwrite` is false.
        """
        for name in names:
            check_choice("names", name, FILES)
        folder, chosen = Path(folder), [name for name in FILES if name in names]
        _make_room(folder, chosen, overwrite)
        picture, labels = Picture(self.picture.codes[self._plane]), self.labels[self._plane]
        apart = self.boundary_probability[self._plane]
        writers: dict[str, Callable[[Path], None]] = {
            "labels.tif": lambda path: write_labels_tif(path, self.labels),
            "labels.png": lambda path: write_labels_png(path, labels, label_colours(self.n_clusters)),
            "overlay.png": lambda path: write_png(path, overlay(picture, labels)),
            "boundary_probability.png": lambda path: write_png(path, np.rint(255 * apart).astype(np.uint8)),
            "report.html": lambda path: _write(path, report(self.summary(), picture, labels, apart, self.chains)),
            "result.json": lambda path: _write(path, json.dumps(self.summary(), indent=2, ensure_ascii=False) + "\n"),
        }
        for name in chosen:
            if name in self.left_out:
                (folder / name).unlink(missing_ok=True)  # of another result
                say(f"{printable(folder / name)} is left out: {self.left_out[name]}")
            else:
                writers[name](folder / name)


def _make_room(folder: Path, names: Sequence[str], overwrite: bool) -> None:
    """Make the folder; where it holds files of these names, refuse, or take the old result away."""
    if os.path.lexists(folder) and not folder.is_dir():
        invalid("folder", "be a folder", str(folder))
    there = [name for name in names if os.path.lexists(folder / name)]
    if there and not overwrite:
        kept, them = ("is kept", "it") if len(there) == 1 else ("are kept", "them")
        told = f"{printable(folder)} holds {', '.join(there)} already, which {kept}"
        raise FileExistsError(f"{told}; overwrite=True replaces {them}")
    folder.mkdir(parents=True, exist_ok=True)
    if "result.json" in there:  # it would be wrong if this is killed midway
        (folder / "result.json").unlink()


def _write(path: Path, text: str) -> None:
    """Write text; characters that are none, as in some names of files, as question marks."""
    atomic_write(path, lambda file: file.write(text.encode(errors="replace")))


class SegmentationInterrupted(KeyboardInterrupt):
    """Ctrl-C while sampling; `segmentation` is what the sweeps finished by then give."""

    def __init__(self, segmentation: Segmentation) -> None:
        super().__init__(f"interrupted after {segmentation.chains.n_sweeps} sweeps")
        self.segmentation = segmentation


def repeating(
    settings: Settings,
    seed: int,
    source: str | None,
    channel_axis: ChannelAxis = "auto",
    mask: str | None = None,
    written: Mapping[str, str] = {},
) -> str:
    """The call of `segment` with these settings; `written` are settings as Python that their values do not tell."""
    arguments = [repr(source) if source else "image"]
    if settings.preset != "photo":
        arguments.append(repr(settings.preset))
    changes = {name: _written(name, value) for name, value in settings.changes().items()} | dict(written)
    arguments += [f"{name}={text}" for name, text in changes.items()]
    if channel_axis != "auto":
        arguments.append(f"channel_axis={channel_axis}")
    if mask is not None:
        arguments.append("mask=mask" if mask == "an array" else f"mask={mask!r}")
    return f"ss.segment({', '.join([*arguments, f'rng={seed}'])})"


def plain_settings(settings: Settings) -> dict[str, str | int | float | bool | None]:
    """Settings by name, as result.json has them."""
    return {name: _plain(name, value) for name, value in vars(settings).items()}


def _written(name: str, value: Any) -> str:
    """A setting as Python; arrays and the like by their name."""
    if isinstance(value, np.generic):
        value = value.item()
    names = isinstance(value, (tuple, list)) and all(isinstance(item, str) for item in value)
    if isinstance(value, (str, int, float)) or names:
        return repr(value)
    return f"ss.{value!r}" if isinstance(value, (PartitionPrior, DataDriven)) else name


def _plain(name: str, value: Any) -> str | int | float | bool | None:
    """A setting as JSON knows it."""
    if isinstance(value, np.generic):
        value = value.item()
    return value if isinstance(value, (str, int, float, bool, type(None))) else _written(name, value)
