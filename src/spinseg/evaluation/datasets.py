"""Photographs with ground truth: BSDS300 and BSDS500, LabelMe's eight outdoor categories, any two folders.

A reader lists what is there, in order of names, and opens nothing: an `Example` reads its files when it is asked to. A
photograph without ground truth, or ground truth without its photograph, is listed too and says so when it is read: half
a dataset must not pass for a whole one.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinseg._validation import check_choice, check_int, invalid
from spinseg.image.io import MAX_PIXELS, read_image

FolderPath = str | os.PathLike[str]

DATASETS = ("bsds300", "bsds500", "labelme8", "folder")
SPLITS = ("train", "val", "test")
IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".tif", ".tiff", ".bmp", ".gif", ".webp", ".npy")
LABEL_SUFFIXES = (".png", ".tif", ".tiff", ".bmp", ".gif", ".npy", ".mat", ".seg")  # not JPEG: it blurs numbers

BSDS_PAGE = (
    '"The Berkeley Segmentation Dataset and Benchmark" (BSDS300) or "Contour Detection and Image Segmentation'
    ' Resources" (BSDS500), both at www2.eecs.berkeley.edu/Research/Projects/CS/vision'
)
LABELME_PAGE = '"Nonparametric Scene Parsing via Label Transfer", people.csail.mit.edu/celiu/LabelTransfer'


@dataclass(frozen=True)
class Example:
    """A photograph and where its ground truth lies; nothing is read before it is asked for.

    Attributes
    ----------
    name : str
        The photograph's file name without its ending.
    image_path : Path
    label_paths : tuple of Path
        One file an annotator, or one `.mat` file for all.
    unlabelled : int, optional
        What label pictures hold where nothing is labelled.
    """

    name: str
    image_path: Path
    label_paths: tuple[Path, ...]
    unlabelled: int | None = None

    def image(self) -> NDArray[Any]:
        """The photograph as `read_image` gives it: (H, W, 3) uint8 for a colour JPEG."""
        _must_exist(f"the photograph {self.name}", self.image_path)
        return read_image(self.image_path)

    def annotations(self) -> list[NDArray[np.int32]]:
        """One label image an annotator, -1 where unlabelled; all of one shape."""
        for path in self.label_paths:
            _must_exist(f"the ground truth of {self.name}", path)
        images = [image for path in self.label_paths for image in read_labels(path, unlabelled=self.unlabelled)]
        for image in images:
            if image.shape != images[0].shape:
                invalid(f"the ground truth of {self.name}", f"have one shape, {images[0].shape}", image.shape)
        return images


def dataset_named(name: str, root: FolderPath, split: str | None = None) -> list[Example]:
    """The photographs of a dataset of `DATASETS` under a folder; of BSDS the test photographs, unless told otherwise.

    "folder" is any folder that has two folders, `images` and `labels`, as `folder` reads them.
    """
    check_choice("dataset", name, DATASETS)
    if name.startswith("bsds"):
        return bsds(root, split or "test", edition=name)
    if name == "labelme8":
        return labelme(root, split)
    if split is not None:
        invalid("split", "be left out for a folder, which has no splits", split)
    return folder(Path(root, "images"), Path(root, "labels"))


def bsds(root: FolderPath, split: str = "test", *, edition: str | None = None) -> list[Example]:
    """The photographs of one split of BSDS300 or BSDS500, by name, each with all annotators who saw it in colour.

    In `root`, or in a folder called bsds300, BSDS500, BSR/BSDS500/data or the like below it, there must be
    images/SPLIT/ID.jpg, and groundTruth/SPLIT/ID.mat or ground_truth/SPLIT/ID.mat (as BSDS500 has it) or else
    human/color/ANNOTATOR/ID.seg (as BSDS300 has it).

    Parameters
    ----------
    root : path
    split : {"train", "val", "test"}
        BSDS300 has no "val".
    edition : {"bsds300", "bsds500"}, optional
        Which one, where there are both.
    """
    check_choice("split", split, SPLITS)
    places = ["bsds", "bsds300", "bsds500", "bsr", "data"]
    if edition is not None:
        check_choice("edition", edition, ("bsds300", "bsds500"))
        places.remove("bsds500" if edition == "bsds300" else "bsds300")
    images = f"images/{split}/*.jpg"
    truths = [f"groundTruth/{split}/*.mat", f"ground_truth/{split}/*.mat", "human/color/*/*.seg"]
    base = _base("BSDS", root, places, [images], truths, BSDS_PAGE)
    photographs = _by_name(_visible(base, images))
    truth = next(pattern for pattern in truths if _visible(base, pattern))
    labels: dict[str, tuple[Path, ...]] = {}
    for path in sorted(_visible(base, truth), key=lambda path: (len(path.parent.name), path)):  # annotator 9 before 10
        if path.suffix == ".mat" or path.stem in photographs:  # human/ has all splits; the photographs tell them apart
            labels[path.stem] = (*labels.get(path.stem, ()), path)
    return _paired(photographs, labels, base / images, base / truth)


def labelme(root: FolderPath, split: str | None = None) -> list[Example]:
    """The photographs of LabelMe's eight outdoor categories, by name: CATEGORY_NUMBER.

    In `root`, or in a folder called labelme or labelme8 below it, there must be images/NAME.jpg and labels/NAME.png,
    with 0 for unlabelled and a number for each class. Touching objects of one class are one region, as stored.

    Parameters
    ----------
    root : path
    split : None
        There are no splits: a name of one is refused.
    """
    if split is not None:
        invalid("split", "be None for LabelMe, which has no splits", split)
    images, truth = "images/*.jpg", "labels/*.png"
    base = _base("LabelMe", root, ("labelme", "labelme8"), [images], [truth], LABELME_PAGE)
    labels = {name: (path,) for name, path in _by_name(_visible(base, truth)).items()}
    return _paired(_by_name(_visible(base, images)), labels, base / images, base / truth, unlabelled=0)


def folder(images: FolderPath, labels: FolderPath, *, unlabelled: int | None = None) -> list[Example]:
    """The photographs of one folder with the label images of another, by name.

    The ground truth of NAME.jpg is NAME.png, .tif, .bmp, .gif, .npy, .mat or .seg, or several of them in a folder NAME,
    one an annotator. In a colour picture every colour is a label.

    Parameters
    ----------
    images, labels : path
        Two folders.
    unlabelled : int, optional
        What label pictures hold where nothing is labelled, 0 in many; a colour is 0xRRGGBB. Negative numbers say
        unlabelled in any case.
    """
    if unlabelled is not None:
        unlabelled = check_int("unlabelled", unlabelled, at_least=-(2**31), below=2**31)
    for name, place in (("images", images), ("labels", labels)):
        if not Path(place).is_dir():
            raise FileNotFoundError(f"{name} must be a folder; received {os.fspath(place)!r}")
    photographs = _by_name(_visible(Path(images), "*", IMAGE_SUFFIXES))
    single = _by_name(_visible(Path(labels), "*", LABEL_SUFFIXES))
    truths: dict[str, tuple[Path, ...]] = {name: (path,) for name, path in single.items()}
    for name in photographs:
        several = tuple(_visible(Path(labels, name), "*", LABEL_SUFFIXES))
        if several and name in single:
            invalid(f"the ground truth of {name}", "be a file or a folder", f"{single[name].name} and {name}/")
        if several:
            truths[name] = several
    for what, place, files in (("photograph", images, photographs), ("label image", labels, truths)):
        if not files:
            raise FileNotFoundError(f"no {what} in {os.fspath(place)!r}")
    return _paired(photographs, truths, Path(images, "*.jpg"), Path(labels, "*.png"), unlabelled)


def read_labels(path: FolderPath, *, unlabelled: int | None = None) -> list[NDArray[np.int32]]:
    """The label images in a file, one an annotator, -1 where unlabelled.

    A BSDS `.mat` file has several, numbered from 1 there and from 0 here; a `.seg` file and a picture have one. Of a
    picture with a palette the indices are taken, of one in full colour 0xRRGGBB.

    Raises
    ------
    ValueError, OSError
        One line with the file, the rule, and what was found.
    """
    path = Path(path)
    if path.suffix.lower() == ".mat":
        return _read_mat(path)
    return [_read_seg(path) if path.suffix.lower() == ".seg" else _read_label_picture(path, unlabelled)]


def _read_mat(path: Path) -> list[NDArray[np.int32]]:
    """The cell array `groundTruth` of BSDS500: one struct an annotator, whose field Segmentation numbers from 1."""
    from scipy.io import loadmat

    rule = "be a MATLAB file with BSDS's groundTruth"
    with path.open("rb") as file:  # an unreadable file is an OSError; all that follows is about what it holds
        try:
            annotators = loadmat(file, variable_names=["groundTruth"])["groundTruth"].ravel()
            images = [annotator["Segmentation"].item() for annotator in annotators]
        except Exception as error:  # damaged bytes make loadmat fail in a dozen ways
            invalid(str(path), rule, f"{type(error).__name__}: {error}")
    for image in images:
        if not isinstance(image, np.ndarray) or image.dtype.kind not in "iu" or image.ndim != 2 or image.size == 0:
            invalid(str(path), rule + " of whole numbers, one a pixel", image)
    if not images:
        invalid(str(path), rule, "no annotator")
    return [_as_labels(path, image.astype(np.int64) - 1) for image in images]


def _read_seg(path: Path) -> NDArray[np.int32]:
    """BSDS300's text format: a header, `data`, then lines of segment, row, first and last column, counted from 0.

    Described in seg-format.txt on the page of BSDS300: comments follow #, lines come in any order, and each pixel is
    named exactly once.
    """
    lines = [line.partition("#")[0].split() for line in path.read_text("ascii", errors="replace").splitlines()]
    try:
        start = lines.index(["data"])
        header = {words[0]: words[1:] for words in lines[:start] if words}
        (width,), (height,) = (map(int, header[key]) for key in ("width", "height"))
        runs = np.array([list(map(int, words)) for words in lines[start + 1 :] if words], np.int64).reshape(-1, 4)
    except (KeyError, ValueError, OverflowError) as error:
        rule = "have a header with width and height, a line 'data', then lines of four whole numbers"
        invalid(str(path), rule, f"{type(error).__name__}: {error}")
    for key, value in (("format", "ascii cr"), ("flipflop", "0")):  # 1: people saw the image upside down
        if " ".join(header.get(key, [value])) != value:
            invalid(str(path), f"have {key} {value}", " ".join(header[key]))
    if not 0 < width * height <= MAX_PIXELS:
        invalid(str(path), f"have 1 to {MAX_PIXELS} pixels", f"width {width}, height {height}")
    segment, row, first, last = runs.T
    inside = (segment >= 0) & (row >= 0) & (row < height) & (first >= 0) & (first <= last) & (last < width)
    if not inside.all():
        invalid(str(path), f"have segments from 0 and runs inside {width} x {height} pixels", runs[~inside][0].tolist())
    starts, lengths = row * width + first, last - first + 1
    order = np.argsort(starts)
    expected = np.cumsum(lengths[order]) - lengths[order]  # where each run begins if they follow one another
    if lengths.sum() != width * height or np.any(starts[order] != expected):
        invalid(
            str(path), f"name each of {width} x {height} pixels once", f"{lengths.sum()} pixels in {len(runs)} runs"
        )
    return _as_labels(path, np.repeat(segment[order], lengths[order]).reshape(height, width))


def _read_label_picture(path: Path, unlabelled: int | None) -> NDArray[np.int32]:
    indices = _palette_indices(path)
    numbers = read_image(path) if indices is None else indices
    if numbers.dtype == np.uint8 and numbers.ndim == 3 and numbers.shape[2] in (3, 4):
        numbers = numbers[..., :3].astype(np.int64) @ [0x10000, 0x100, 1]
    if numbers.dtype.kind not in "biu":
        invalid(str(path), "hold whole numbers or 8-bit colours", numbers.dtype.name)
    return _as_labels(path, numbers, unlabelled)


def _palette_indices(path: Path) -> NDArray[np.uint8] | None:
    """The numbers behind a palette's colours; None where there is no palette."""
    from PIL import Image

    if path.suffix.lower() not in (".png", ".gif", ".bmp"):
        return None
    try:
        with Image.open(path) as image:
            return np.asarray(image) if image.mode == "P" else None
    except Exception:  # Pillow has many ways to fail; `read_image` tells of them in one line
        return None


def _as_labels(path: Path, numbers: NDArray[Any], unlabelled: int | None = None) -> NDArray[np.int32]:
    if numbers.size and numbers.max() >= 2**31:
        invalid(str(path), "hold labels below 2^31", numbers.max())
    labels = np.maximum(numbers.astype(np.int64), -1).astype(np.int32)
    if unlabelled is not None:
        labels[numbers == unlabelled] = -1
    return labels


def _must_exist(what: str, path: Path) -> None:
    if not path.exists():
        raise FileNotFoundError(f"{what} must be in {str(path)!r}; received no such file")


def _base(
    dataset: str, root: FolderPath, names: Sequence[str], images: Sequence[str], truths: Sequence[str], page: str
) -> Path:
    """The one folder, `root` or below it along `names`, that has photographs and ground truth."""
    found = [
        base
        for base in _below(Path(root), names, depth=3)
        if all(any(_visible(base, pattern) for pattern in group) for group in (images, truths))
    ]
    if not found:
        wanted = f"{' or '.join(images)} and {' or '.join(truths)}"
        state = "looked for" if Path(root).is_dir() else "there is no such folder, which should have"
        raise FileNotFoundError(f"no {dataset} under {os.fspath(root)!r}: {state} {wanted}; it is offered on {page}")
    if len(found) > 1 and found[0] != Path(root):
        invalid("root", f"hold one {dataset}", [str(base.relative_to(root)) for base in found])
    return found[0]


def _below(place: Path, names: Sequence[str], depth: int) -> Iterator[Path]:
    yield place
    if depth and place.is_dir():
        for child in sorted(place.iterdir()):
            if child.name.lower() in names and child.is_dir():
                yield from _below(child, names, depth - 1)


def _visible(place: Path, pattern: str, suffixes: Sequence[str] | None = None) -> list[Path]:
    """Files of a pattern in order, without the hidden ones that archives from other systems leave (._ID.jpg)."""
    return sorted(
        path
        for path in place.glob(pattern)
        if not path.name.startswith(".") and path.is_file() and (suffixes is None or path.suffix.lower() in suffixes)
    )


def _by_name(paths: Iterable[Path]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for path in paths:
        if found.setdefault(path.stem, path) != path:
            invalid(str(path.parent), "have one file of a name", f"{found[path.stem].name} and {path.name}")
    return found


def _paired(
    images: Mapping[str, Path],
    labels: Mapping[str, tuple[Path, ...]],
    image_place: Path,
    label_place: Path,
    unlabelled: int | None = None,
) -> list[Example]:
    """One example for every name; what one half lacks is named by where it should be."""

    def expected(place: Path, name: str) -> Path:
        return place.with_name(name + place.suffix)

    return [
        Example(
            name,
            images.get(name, expected(image_place, name)),
            labels.get(name, (expected(label_place, name),)),
            unlabelled,
        )
        for name in sorted(images.keys() | labels.keys())
    ]
