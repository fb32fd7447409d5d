"""Networks that see evidence of boundaries, run by ONNX Runtime.

A network is an ONNX file. Its input is an image, (1, 3, height, width) of float32 from 0 to 1, whose sides are
multiples of CELL; its output `boundary`, (1, 2, height, width), are the log-odds of a boundary within 1 and 3 pixels of
each pixel. `studies/training` trains and exports those of the package.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cached_property, lru_cache
from importlib.resources import files
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spinseg._errors import InvalidInput

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

RADII = (1, 3)  # pixels, within which a boundary counts
CELL = 32  # pixels along each side that one pixel of the coarsest layer stands for
BORDER = CELL // 2  # pixels by which an image is mirrored before its first; about as many after its last
MIN_SIDE = 6 * CELL  # pixels: a small picture is continued to this size, since the network is used to see as much
REACH = 6 * CELL  # pixels: farther ones have no influence (30 + 124 in the layers up and down, and less than a cell)
WINDOW = 32 * CELL  # pixels along each side that are done at a time: they take half a gigabyte
SIZES = {"photograph": (1.0,), "measured": (1.0, 1.4)}  # at which an image is seen, relative to its own
MAX_ENLARGED = 1_000_000  # pixels of an image that is enlarged, so that its log-odds take seconds
INPUT, OUTPUT = "image", "boundary"

Maps = NDArray[np.float32]


class BoundaryNetwork:
    """A network in an ONNX file, which is loaded when it is first used.

    Parameters
    ----------
    path : str or path
        The file.
    n_threads : int
        The number of threads that one image may use.
    """

    def __init__(self, path: str | os.PathLike[str], n_threads: int = 1) -> None:
        self.path, self.n_threads = os.fspath(path), n_threads

    def __repr__(self) -> str:
        return f"BoundaryNetwork({self.path!r})"

    def __getstate__(self) -> dict[str, object]:
        """Leave out what a process loads for itself."""
        return {"path": self.path, "n_threads": self.n_threads}

    @staticmethod
    def of_file(path: str | os.PathLike[str]) -> BoundaryNetwork:
        """Return the network in a file, which is loaded again only if the file has changed."""
        try:
            changed = os.stat(path).st_mtime_ns
        except OSError:  # which `session` tells
            changed = 0
        return _loaded(os.fspath(path), changed)

    @classmethod
    @lru_cache
    def fitted(cls, kind: str = "photograph") -> BoundaryNetwork:
        """Return the network of the package for photographs, or for measured images."""
        return cls(str(files("spinseg.image").joinpath(f"data/{kind}_network.onnx")))

    @cached_property
    def session(self) -> InferenceSession:
        """The network as the runtime has loaded it; what is no such network is refused."""
        onnxruntime = _runtime()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = self.n_threads, 1
        options.log_severity_level = 4  # what is wrong is raised
        try:
            with open(self.path, "rb") as file:
                content = file.read()
        except OSError as error:
            raise self._refused(f"cannot be read: {error.strerror}") from None
        try:
            session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # the runtime raises a class of its own for each reason
            raise self._refused(f"cannot be loaded by ONNX Runtime: {_reason(error)}") from None
        self._check(session)
        return session

    def _check(self, session: InferenceSession) -> None:
        """Refuse a network with other inputs or outputs."""
        inputs, outputs = session.get_inputs(), {each.name: each for each in session.get_outputs()}
        given = ", ".join(f"{each.name} {each.shape} {each.type}" for each in inputs)
        if [each.name for each in inputs] != [INPUT] or inputs[0].type != "tensor(float)" or len(inputs[0].shape) != 4:
            raise self._refused(f"must have one input, {INPUT} of float32, (1, 3, height, width): it has {given}")
        if OUTPUT not in outputs:
            raise self._refused(f"must have an output {OUTPUT}: it has {', '.join(outputs)}")

    def _refused(self, why: str) -> InvalidInput:
        return InvalidInput(f"the network {self.path} {why}")

    def run(self, maps: Maps, names: list[str]) -> list[Maps]:
        """Return outputs by name for an image, (3, height, width), whose sides are multiples of CELL."""
        session, options = self.session, _runtime().RunOptions()
        options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")  # else it keeps what it took
        try:
            found = session.run(names, {INPUT: np.ascontiguousarray(maps[None], np.float32)}, options)
        except Exception as error:  # as above: of an image that it cannot take, or of too little memory
            raise self._refused(f"cannot be run on an image of {maps.shape[1:]} pixels: {_reason(error)}") from None
        return [each[0] for each in found]

    def log_odds(self, rgb: Maps, min_side: int = MIN_SIDE) -> Maps:
        """Return the log-odds of a boundary within each of RADII of each pixel of (height, width, 3), from 0 to 1.

        An image is continued to `min_side` pixels along each side, a multiple of CELL.
        """
        height, width = rgb.shape[:2]
        if max(height, width) <= WINDOW + 2 * REACH:
            return self._log_odds(rgb, min_side)
        found = np.empty((len(RADII), height, width), np.float32)
        for window in product(*(range(0, length, WINDOW) for length in (height, width))):
            own = tuple(slice(start, start + WINDOW) for start in window)
            seen = tuple(span_seen(span, length) for span, length in zip(own, (height, width), strict=True))
            inner = tuple(slice(o.start - s.start, o.stop - s.start) for o, s in zip(own, seen, strict=True))
            found[:, *own] = self._log_odds(rgb[seen])[:, *inner]
        return found

    def mean_log_odds(self, rgb: Maps, sizes: Iterable[float]) -> Maps:
        """Return the mean of the log-odds of the image at several sizes, relative to its own, each brought back to it.

        A size above 1 is left out where the image would have more than MAX_ENLARGED pixels.
        """
        height, width = rgb.shape[:2]
        used = [size for size in sizes if size <= 1 or height * width * size**2 <= MAX_ENLARGED]
        found = []
        for size in used:
            seen = resized(np.moveaxis(rgb, -1, 0), (max(round(size * height), 1), max(round(size * width), 1)))
            found.append(resized(self.log_odds(np.ascontiguousarray(np.moveaxis(seen, 0, -1))), (height, width)))
        return np.mean(found, axis=0, dtype=np.float32)

    def _log_odds(self, rgb: Maps, min_side: int = MIN_SIDE) -> Maps:
        """Return the log-odds of the whole image at once."""
        continued, spans = _continued(rgb, min_side)
        (found,) = self.run(continued, [OUTPUT])
        if found.shape != (len(RADII), *continued.shape[1:]):
            wanted = f"({len(RADII)}, height, width)"
            raise self._refused(f"must have an output {OUTPUT} {wanted}: {found.shape} for {continued.shape[1:]}")
        if not np.isfinite(found).all():
            raise self._refused("gives log-odds that are not finite numbers")
        return found[:, *spans]

    def features(self, rgb: Maps) -> NDArray[np.float32]:
        """Return mean and standard deviation, over the whole image, of each map of all outputs but the log-odds."""
        names = [each.name for each in self.session.get_outputs() if each.name != OUTPUT]
        layers = [x.reshape(len(x), -1) for x in self.run(_continued(rgb)[0], names)]
        return np.concatenate([f(x, axis=1) for x in layers for f in (np.mean, np.std)])


def _runtime() -> Any:
    """Return ONNX Runtime. Its telemetry, which is on by default, is off: nothing that is loaded is reported."""
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # read when it is imported first
    import onnxruntime

    onnxruntime.disable_telemetry_events()  # in case somebody else has imported it
    return onnxruntime


@lru_cache(maxsize=4)
def _loaded(path: str, changed: int) -> BoundaryNetwork:
    return BoundaryNetwork(path)


def _reason(error: Exception) -> str:
    """Return the first line of what the runtime says, without its codes."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rpartition(" : ")[2]


def _continued(rgb: Maps, min_side: int = MIN_SIDE) -> tuple[Maps, tuple[slice, ...]]:
    """Return an image, (height, width, 3), as maps that are mirrored beyond its edges, and where it lies in them."""
    spans = [_mirrored_span(length, min_side) for length in rgb.shape[:2]]
    beyond = [(span.start, total - span.stop) for span, total in spans]
    return np.moveaxis(np.pad(rgb, [*beyond, (0, 0)], mode="symmetric"), -1, 0), tuple(span for span, _ in spans)


def _mirrored_span(length: int, min_side: int) -> tuple[slice, int]:
    """Return where an image of this length lies along an axis once it is continued, and how long that is.

    Where cells begin depends on where the image begins alone, so that a part of it that begins with a cell serves.
    """
    if length < min_side - 2 * BORDER:
        before = (min_side - length) // 2
        return slice(before, before + length), min_side
    return slice(BORDER, BORDER + length), -(-(BORDER + length + BORDER // 2) // CELL) * CELL


def resized(maps: Maps, shape: tuple[int, int]) -> Maps:
    """Return maps, (n, height, width), at another size: interpolated linearly, or means where they become smaller."""
    from PIL import Image

    if maps.shape[1:] == shape:
        return maps
    return np.stack([np.asarray(Image.fromarray(each).resize(shape[::-1], Image.Resampling.BILINEAR)) for each in maps])


def span_seen(span: slice, length: int) -> slice:
    """Return the pixels along an axis, of `length`, that the log-odds of a span depend on, from the start of a cell."""
    return slice(max(0, span.start // CELL * CELL - REACH), min(length, -(-span.stop // CELL) * CELL + REACH))
