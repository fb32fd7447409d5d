"""Images with ground truth: BSDS300 and BSDS500, LabelMe's eight outdoor categories, nuclei, any two folders.

The functions list examples by name and open no file: the methods of `Example` read the files. A photograph without
ground truth, or ground truth without a photograph, is listed too and raises an error when it is read, so that an
incomplete dataset is not mistaken for a complete one.
"""

import csv
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinseg._validation import check_choice, check_int, invalid
from spinseg.image.formats import content_hash
from spinseg.image.io import MAX_PIXELS, read_image

FolderPath = str | os.PathLike[str]

DATASETS = ("bsds300", "bsds500", "labelme8", "nuclei", "folder")
SPLITS = ("train", "val", "test")
IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".tif", ".tiff", ".bmp", ".gif", ".webp", ".npy")
LABEL_SUFFIXES = (".png", ".tif", ".tiff", ".bmp", ".gif", ".npy", ".mat", ".seg")  # not JPEG: it changes labels

BSDS_PAGE = (
    '"The Berkeley Segmentation Dataset and Benchmark" (BSDS300) or "Contour Detection and Image Segmentation'
    ' Resources" (BSDS500), both at www2.eecs.berkeley.edu/Research/Projects/CS/vision'
)
NUCLEI_PAGE = "bbbc.broadinstitute.org/BBBC038"
LABELME_PAGE = '"Nonparametric Scene Parsing via Label Transfer", people.csail.mit.edu/celiu/LabelTransfer'


def data_root() -> Path:
    """Return the folder named by SPINSEG_DATA, by default ../shared/data beside the repository."""
    return Path(os.environ.get("SPINSEG_DATA", Path(__file__).parents[3] / "shared" / "data"))


@dataclass(frozen=True)
class Example:
    """A photograph and its ground truth, which are read by the methods.

    Attributes
    ----------
    name : str
        The photograph's file name without its suffix.
    image_path : Path
    label_paths : tuple of Path
        One file per annotator, or one `.mat` file for all.
    unlabeled : int, optional
        The value of unlabeled pixels in label pictures.
    group : str, optional
        The group of images that it belongs to, for scores by group.
    has_objects : bool
        Whether the ground truth has objects on a background, 0, so that methods for objects are compared by F1.
    """

    name: str
    image_path: Path
    label_paths: tuple[Path, ...]
    unlabeled: int | None = None
    group: str = ""
    has_objects: bool = False

    def image(self) -> NDArray[Any]:
        """Return the photograph as `read_image` does: (H, W, 3) uint8 for a color JPEG."""
        _check_exists(f"the photograph {self.name}", self.image_path)
        return read_image(self.image_path)

    def content(self) -> str:
        """Return a hash of what the photograph's and the ground truth's files hold; those that are not there count."""
        digest = hashlib.sha256(repr(self.unlabeled).encode())
        for path in (self.image_path, *self.label_paths):
            digest.update(f"{content_hash(path)}\n".encode())
        return digest.hexdigest()[:16]

    def annotations(self) -> list[NDArray[np.int32]]:
        """Return one label image per annotator, -1 where unlabeled; all have the same shape."""
        for path in self.label_paths:
            _check_exists(f"the ground truth of {self.name}", path)
        images = [image for path in self.label_paths for image in read_labels(path, unlabeled=self.unlabeled)]
        for image in images:
            if image.shape != images[0].shape:
                invalid(f"the ground truth of {self.name}", f"have one shape, {images[0].shape}", image.shape)
        return images


def get_dataset(name: str, root: FolderPath, split: str | None = None) -> list[Example]:
    """Return the examples of a dataset of `DATASETS` under a folder; the default split of BSDS and nuclei is "test".

    "folder" is any folder with subfolders `images` and `labels`, as `folder` takes them.
    """
    check_choice("dataset", name, DATASETS)
    if name.startswith("bsds"):
        return bsds(root, split or "test", edition=name)
    if name == "labelme8":
        return labelme(root, split)
    if name == "nuclei":
        return nuclei(root, split or "test")
    if split is not None:
        invalid("split", "be left out for a folder, which has no splits", split)
    return folder(Path(root, "images"), Path(root, "labels"))


def bsds(root: FolderPath, split: str = "test", *, edition: str | None = None) -> list[Example]:
    """Return the examples of a split of BSDS300 or BSDS500 by name, each with all annotators who saw it in color.

    In `root`, or in a folder called bsds300, BSDS500, BSR/BSDS500/data or the like below it, there must be
    images/SPLIT/ID.jpg, and groundTruth/SPLIT/ID.mat or ground_truth/SPLIT/ID.mat (as BSDS500 has it) or else
    human/color/ANNOTATOR/ID.seg (as BSDS300 has it).

    Parameters
    ----------
    root : path
    split : {"train", "val", "test"}
        BSDS300 has no "val".
    edition : {"bsds300", "bsds500"}, optional
        Needed if `root` has both.
    """
    check_choice("split", split, SPLITS)
    base_names = ["bsds", "bsds300", "bsds500", "bsr", "data"]
    if edition is not None:
        check_choice("edition", edition, ("bsds300", "bsds500"))
        base_names.remove("bsds500" if edition == "bsds300" else "bsds300")
    images = f"images/{split}/*.jpg"
    truths = [f"groundTruth/{split}/*.mat", f"ground_truth/{split}/*.mat", "human/color/*/*.seg"]
    base = _find_base("BSDS", root, base_names, [images], truths, BSDS_PAGE)
    photographs = _by_name(_list_files(base, images))
    truth = next(pattern for pattern in truths if _list_files(base, pattern))
    labels: dict[str, tuple[Path, ...]] = {}
    for path in sorted(
        _list_files(base, truth), key=lambda path: (len(path.parent.name), path)
    ):  # annotator 998 before 1105
        if path.suffix == ".mat" or path.stem in photographs:  # human/ has all splits
            labels[path.stem] = (*labels.get(path.stem, ()), path)
    return _pair(photographs, labels, base / images, base / truth)


def labelme(root: FolderPath, split: str | None = None) -> list[Example]:
    """Return the examples of LabelMe's eight outdoor categories by name: CATEGORY_NUMBER.

    In `root`, or in a folder called labelme or labelme8 below it, there must be images/NAME.jpg and labels/NAME.png,
    with 0 for unlabeled and an integer for each class. All objects of one class have the same label.

    Parameters
    ----------
    root : path
    split : None
        There are no splits; any other value is an error.
    """
    if split is not None:
        invalid("split", "be None for LabelMe, which has no splits", split)
    images, truth = "images/*.jpg", "labels/*.png"
    base = _find_base("LabelMe", root, ("labelme", "labelme8"), [images], [truth], LABELME_PAGE)
    labels = {name: (path,) for name, path in _by_name(_list_files(base, truth)).items()}
    return _pair(_by_name(_list_files(base, images)), labels, base / images, base / truth, unlabeled=0)


def nuclei(root: FolderPath, split: str = "test") -> list[Example]:
    """Return the nuclei of a split by name, each with its group: fluorescence, histology or brightfield.

    In `root`, or in a folder called nuclei below it, there must be SPLIT/images/NAME.png, SPLIT/labels/NAME.png, with
    0 for the background and a number for each nucleus, and SPLIT/groups.csv, with the columns image and group.

    Parameters
    ----------
    root : path
    split : {"train", "test"}
    """
    check_choice("split", split, ("train", "test"))
    images, truth, groups = (f"{split}/{name}" for name in ("images/*.png", "labels/*.png", "groups.csv"))
    base = _find_base("nuclei", root, ("nuclei",), [images], [truth], NUCLEI_PAGE)
    _check_exists("the groups of the nuclei", base / groups)
    with open(base / groups, encoding="utf-8", newline="") as file:
        group_of = {row["image"]: row["group"] for row in csv.DictReader(file)}
    labels = {name: (path,) for name, path in _by_name(_list_files(base, truth)).items()}
    found = _pair(_by_name(_list_files(base, images)), labels, base / images, base / truth)
    return [replace(example, group=group_of.get(example.name, ""), has_objects=True) for example in found]


def folder(images: FolderPath, labels: FolderPath, *, unlabeled: int | None = None) -> list[Example]:
    """Return the photographs of one folder with the label images of another, by name.

    The ground truth of NAME.jpg is NAME.png, .tif, .bmp, .gif, .npy, .mat or .seg, or several of them in a folder NAME,
    one per annotator. In a color image every color is a label.

    Parameters
    ----------
    images, labels : path
        Two folders.
    unlabeled : int, optional
        The value of unlabeled pixels, often 0; a color is 0xRRGGBB. Negative values always mean unlabeled.
    """
    if unlabeled is not None:
        unlabeled = check_int("unlabeled", unlabeled, at_least=-(2**31), below=2**31)
    for name, folder_path in (("images", images), ("labels", labels)):
        if not Path(folder_path).is_dir():
            raise FileNotFoundError(f"{name} must be a folder: got {os.fspath(folder_path)!r}")
    photographs = _by_name(_list_files(Path(images), "*", IMAGE_SUFFIXES))
    single = _by_name(_list_files(Path(labels), "*", LABEL_SUFFIXES))
    truths: dict[str, tuple[Path, ...]] = {name: (path,) for name, path in single.items()}
    for name in photographs:
        several = tuple(_list_files(Path(labels, name), "*", LABEL_SUFFIXES))
        if several and name in single:
            invalid(f"the ground truth of {name}", "be a file or a folder", f"{single[name].name} and {name}/")
        if several:
            truths[name] = several
    for what, folder_path, files in (("photograph", images, photographs), ("label image", labels, truths)):
        if not files:
            raise FileNotFoundError(f"no {what} in {os.fspath(folder_path)!r}")
    return _pair(photographs, truths, Path(images, "*.jpg"), Path(labels, "*.png"), unlabeled)


def read_labels(path: FolderPath, *, unlabeled: int | None = None) -> list[NDArray[np.int32]]:
    """Return the label images of a file, one per annotator, -1 where unlabeled.

    A BSDS `.mat` file has several, with labels from 1, which become labels from 0; a `.seg` file and an image have one.
    The labels of an image with a palette are its indices, those of a color image 0xRRGGBB.

    Raises
    ------
    ValueError, OSError
        In one line: the file, the rule, and what was found.
    """
    path = Path(path)
    if path.suffix.lower() == ".mat":
        return _read_mat(path)
    return [_read_seg(path) if path.suffix.lower() == ".seg" else _read_label_picture(path, unlabeled)]


def _read_mat(path: Path) -> list[NDArray[np.int32]]:
    """Read the cell array `groundTruth` of BSDS500: one struct per annotator, with labels from 1 in Segmentation."""
    from scipy.io import loadmat

    rule = "be a MATLAB file with BSDS's groundTruth"
    with path.open("rb") as file:  # an unreadable file is an OSError; other errors are about its content
        try:
            annotators = loadmat(file, variable_names=["groundTruth"])["groundTruth"].ravel()
            images = [annotator["Segmentation"].item() for annotator in annotators]
        except Exception as error:  # loadmat raises many kinds of errors for damaged files
            invalid(str(path), rule, f"{type(error).__name__}: {error}")
    for image in images:
        if not isinstance(image, np.ndarray) or image.dtype.kind not in "iu" or image.ndim != 2 or image.size == 0:
            invalid(str(path), rule + " of whole numbers, one a pixel", image)
    if not images:
        invalid(str(path), rule, "no annotator")
    return [_to_labels(path, image.astype(np.int64) - 1) for image in images]


def _read_seg(path: Path) -> NDArray[np.int32]:
    """Read BSDS300's text format: a header, `data`, then lines of segment, row, first and last column, from 0.

    It is described in seg-format.txt on the page of BSDS300: comments follow #, lines are in any order, and each pixel
    is named exactly once.
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
    for key, value in (("format", "ascii cr"), ("flipflop", "0")):  # flipflop 1: annotators saw the image upside down
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
    expected = np.cumsum(lengths[order]) - lengths[order]  # the start of each run if there are no gaps
    if lengths.sum() != width * height or np.any(starts[order] != expected):
        invalid(
            str(path), f"name each of {width} x {height} pixels once", f"{lengths.sum()} pixels in {len(runs)} runs"
        )
    return _to_labels(path, np.repeat(segment[order], lengths[order]).reshape(height, width))


def _read_label_picture(path: Path, unlabeled: int | None) -> NDArray[np.int32]:
    indices = _palette_indices(path)
    values = read_image(path) if indices is None else indices
    if values.dtype == np.uint8 and values.ndim == 3 and values.shape[2] in (3, 4):
        values = values[..., :3].astype(np.int64) @ [0x10000, 0x100, 1]
    if values.dtype.kind not in "biu":
        invalid(str(path), "hold whole numbers or 8-bit colors", values.dtype.name)
    return _to_labels(path, values, unlabeled)


def _palette_indices(path: Path) -> NDArray[np.uint8] | None:
    """Return the palette indices of an image, or None if it has no palette."""
    from PIL import Image

    if path.suffix.lower() not in (".png", ".gif", ".bmp"):
        return None
    try:
        with Image.open(path) as image:
            return np.asarray(image) if image.mode == "P" else None
    except Exception:  # `read_image` will raise an error of one line
        return None


def _to_labels(path: Path, values: NDArray[Any], unlabeled: int | None = None) -> NDArray[np.int32]:
    if values.size and values.max() >= 2**31:
        invalid(str(path), "hold labels below 2^31", values.max())
    labels = np.maximum(values.astype(np.int64), -1).astype(np.int32)
    if unlabeled is not None:
        labels[values == unlabeled] = -1
    return labels


def _check_exists(what: str, path: Path) -> None:
    if not path.exists():
        raise FileNotFoundError(f"{what} must be in {str(path)!r}: got no such file")


def _find_base(
    dataset: str, root: FolderPath, names: Sequence[str], images: Sequence[str], truths: Sequence[str], page: str
) -> Path:
    """Return the one folder with photographs and ground truth: `root`, or below it in folders of these names."""
    found = [
        base
        for base in _candidate_folders(Path(root), names, depth=3)
        if all(any(_list_files(base, pattern) for pattern in group) for group in (images, truths))
    ]
    if not found:
        wanted = f"{' or '.join(images)} and {' or '.join(truths)}"
        state = "looked for" if Path(root).is_dir() else "there is no such folder, which should have"
        raise FileNotFoundError(f"no {dataset} under {os.fspath(root)!r}: {state} {wanted}; it is offered on {page}")
    if len(found) > 1 and found[0] != Path(root):
        invalid("root", f"hold one {dataset}", [str(base.relative_to(root)) for base in found])
    return found[0]


def _candidate_folders(folder_path: Path, names: Sequence[str], depth: int) -> Iterator[Path]:
    yield folder_path
    if depth and folder_path.is_dir():
        for child in sorted(folder_path.iterdir()):
            if child.name.lower() in names and child.is_dir():
                yield from _candidate_folders(child, names, depth - 1)


def _list_files(folder_path: Path, pattern: str, suffixes: Sequence[str] | None = None) -> list[Path]:
    """Return the files of a pattern, sorted, without hidden ones, such as ._ID.jpg of archives made on macOS."""
    return sorted(
        path
        for path in folder_path.glob(pattern)
        if not path.name.startswith(".") and path.is_file() and (suffixes is None or path.suffix.lower() in suffixes)
    )


def _by_name(paths: Iterable[Path]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for path in paths:
        if found.setdefault(path.stem, path) != path:
            invalid(str(path.parent), "have one file of a name", f"{found[path.stem].name} and {path.name}")
    return found


def _pair(
    images: Mapping[str, Path],
    labels: Mapping[str, tuple[Path, ...]],
    image_pattern: Path,
    label_pattern: Path,
    unlabeled: int | None = None,
) -> list[Example]:
    """Return one example for every name; a missing file has the path where it is expected."""

    def expected(pattern: Path, name: str) -> Path:
        return pattern.with_name(name + pattern.suffix)

    return [
        Example(
            name,
            images.get(name, expected(image_pattern, name)),
            labels.get(name, (expected(label_pattern, name),)),
            unlabeled,
        )
        for name in sorted(images.keys() | labels.keys())
    ]
