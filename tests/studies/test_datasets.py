"""Readers of photographs with ground truth: on the real files where they are, on small ones of the same layout anywhere."""

import os
import re
from pathlib import Path

import numpy as np
import pytest
import tifffile
from photographs import new, write_mat, write_png
from PIL import Image
from scipy.io import loadmat, savemat

from studies.evaluation import metrics
from studies.evaluation.boundaries import outlines
from studies.evaluation.datasets import BSDS_PAGE, LABELME_PAGE, bsds, folder, labelme, read_labels

DATA = Path(os.environ.get("SPINSEG_DATA", Path(__file__).parents[3] / "shared" / "data"))
real = pytest.mark.skipif(not DATA.is_dir(), reason=f"{DATA} is not here: set SPINSEG_DATA to its folder")

HALVES = np.repeat([[0, 0, 1, 1, 1]], 4, axis=0)
STRIPES = np.repeat([[0], [1], [2], [2]], 5, axis=1)


def write_image(path, size=(5, 4)):
    Image.new("RGB", size, (200, 60, 20)).save(new(path))


def seg_text(labels, header=""):
    """As BSDS300 has it, with the lines shuffled: any order is allowed."""
    runs = []
    for row, line in enumerate(labels):
        starts = np.flatnonzero(np.diff(line, prepend=-1))
        for first, stop in zip(starts, [*starts[1:], len(line)], strict=True):
            runs.append(f"{line[first]} {row} {first} {stop - 1}")
    np.random.default_rng(0).shuffle(runs)
    height, width = np.shape(labels)
    head = f"format ascii cr\nimage 1 # a number\nuser 1105\nwidth {width}\nheight {height}\nsegments 3\n{header}"
    return head + "data\n" + "\n".join(runs) + "\n"


def write_seg(path, labels):
    new(path).write_text(seg_text(labels))


def same(found, expected):
    return all(
        image.dtype == np.int32 and np.array_equal(image, other) for image, other in zip(found, expected, strict=True)
    )


@real
@pytest.mark.parametrize(("split", "count"), [("train", 200), ("test", 100)])
def test_bsds300_is_found_whole_and_in_order(split, count):
    examples = bsds(DATA, split)
    assert len(examples) == count and [e.name for e in examples] == sorted(e.name for e in examples)
    assert all(e.image_path.exists() and len(e.label_paths) == 1 and e.label_paths[0].exists() for e in examples)
    assert examples == bsds(DATA / "bsds300", split)
    for example in examples[:: count // 5]:
        annotations = example.annotations()
        assert 4 <= len(annotations) <= 9
        assert all(image.dtype == np.int32 and image.min() == 0 for image in annotations)
        assert example.image().shape == (*annotations[0].shape, 3) and example.image().dtype == np.uint8


@real
def test_seg_and_mat_of_the_same_annotator_are_equal():
    examples = {example.name: example for example in bsds(DATA)}
    paths = sorted((DATA / "bsds300" / "seg_examples").glob("*.seg"))
    assert len(paths) == 6
    for path in paths:
        (labels,) = read_labels(path)
        matches = [np.array_equal(labels, other) for other in examples[path.stem.split("_")[0]].annotations()]
        assert matches.count(True) == 1


@real
def test_boundaries_are_those_that_bsds_stores_thinned():
    for example in bsds(DATA)[:20:5]:
        stored = loadmat(example.label_paths[0])["groundTruth"].ravel()
        for truth, labels in zip(stored, example.annotations(), strict=True):
            assert np.array_equal(outlines(labels), truth["Boundaries"].item() != 0)


@real
def test_labelme_is_found_whole_and_unlabeled_pixels_are_marked():
    examples = labelme(DATA)
    assert len(examples) == 400 and examples == labelme(DATA / "labelme8")
    categories = [example.name.split("_")[0] for example in examples]
    assert categories == sorted(categories) and {categories.count(name) for name in set(categories)} == {50}
    for example in examples[::80]:
        (labels,) = example.annotations()
        stored = np.asarray(Image.open(example.label_paths[0]))
        assert labels.dtype == np.int32 and np.array_equal(labels, np.where(stored == 0, -1, stored.astype(int)))
        assert example.image().shape == (256, 256, 3) and labels.max() <= 33


@real
def test_people_agree_with_each_other_as_they_are_known_to():
    found = []
    for example in bsds(DATA)[::10]:
        one, *others = example.annotations()
        found.append(metrics.scores(one, others))
    rand, _, information, _, covering, *_ = np.mean(found, axis=0)
    assert rand == pytest.approx(0.867, abs=0.04)  # ten photographs, one person each
    assert information == pytest.approx(1.16, abs=0.25) and covering == pytest.approx(0.728, abs=0.06)


@pytest.mark.parametrize(
    ("base", "truth"),
    [("", "groundTruth"), ("bsds300", "ground_truth"), ("BSDS500/data", "groundTruth"), ("BSR/BSDS500/data", "groundTruth")],
)  # fmt: skip
def test_bsds_with_mat_files(tmp_path, base, truth):
    for name in ("20", "100", "3"):
        write_image(tmp_path / base / "images" / "val" / f"{name}.jpg")
        write_mat(tmp_path / base / truth / "val" / f"{name}.mat", HALVES, STRIPES)
    write_image(tmp_path / base / "images" / "val" / "other.png")
    (tmp_path / base / "images" / "val" / "._20.jpg").write_bytes(b"left by another system")
    examples = bsds(tmp_path, "val")
    assert [example.name for example in examples] == ["100", "20", "3"]
    assert all(same(example.annotations(), [HALVES, STRIPES]) for example in examples)
    assert examples[0].image().shape == (4, 5, 3)


def test_bsds_with_seg_files_of_color_annotators_by_number(tmp_path):
    for split, name in (("train", "7"), ("test", "8"), ("test", "9")):
        write_image(tmp_path / "BSDS300" / "images" / split / f"{name}.jpg")
        write_seg(tmp_path / "BSDS300" / "human" / "color" / "1105" / f"{name}.seg", STRIPES)
    write_seg(tmp_path / "BSDS300" / "human" / "color" / "998" / "8.seg", HALVES)
    write_seg(tmp_path / "BSDS300" / "human" / "gray" / "1000" / "8.seg", HALVES * 0)
    eight, nine = bsds(tmp_path)
    assert (eight.name, nine.name) == ("8", "9")
    assert same(eight.annotations(), [HALVES, STRIPES]) and same(nine.annotations(), [STRIPES])
    assert [example.name for example in bsds(tmp_path, "train")] == ["7"]


def test_any_two_folders_and_every_kind_of_label_file(tmp_path):
    numbers = np.array([[0, 1, 300], [2, 2, 0]])
    images, labels = tmp_path / "photographs", tmp_path / "truth"
    for name in "abcdefghi":
        write_image(images / f"{name}.{'JPG' if name == 'a' else 'png'}", (3, 2))
    write_png(labels / "a.PNG", numbers % 256)
    write_png(labels / "b.png", numbers, np.uint16)
    tifffile.imwrite(labels / "c.tif", (numbers - 1).astype(np.int32))  # a negative number says unlabeled
    np.save(labels / "d.npy", numbers)
    write_mat(labels / "e.mat", numbers, numbers)
    write_seg(labels / "f.seg", numbers)
    write_png(labels / "g" / "second.png", numbers % 3)
    write_png(labels / "g" / "first.png", numbers % 2)
    palette = Image.fromarray((numbers % 256).astype(np.uint8))
    palette.putpalette([9] * 768)  # all of one color: the indices alone tell labels apart
    palette.save(labels / "h.png")
    colors = np.stack([numbers % 256, numbers // 256, 0 * numbers], axis=-1).astype(np.uint8)
    Image.fromarray(colors).save(labels / "i.png")
    (labels / "readme.txt").write_text("not a label image")
    byte, found = numbers % 256, folder(images, labels)
    expected = [[byte], [numbers], [numbers - 1], [numbers], [numbers] * 2, [numbers]]
    expected += [[numbers % 2, numbers % 3], [byte], [(byte << 16) + (numbers // 256 << 8)]]
    assert "".join(example.name for example in found) == "abcdefghi"
    assert all(same(example.annotations(), truth) for example, truth in zip(found, expected, strict=True))
    assert same(folder(images, labels, unlabeled=2)[0].annotations(), [np.where(numbers == 2, -1, byte)])
    assert same(read_labels(labels / "i.png", unlabeled=2 << 16), [np.where(numbers == 2, -1, expected[8][0])])


def test_an_absent_dataset_says_what_was_looked_for_and_who_offers_it(tmp_path):
    write_image(tmp_path / "images" / "val" / "1.jpg")  # photographs alone are no dataset
    write_image(tmp_path / "images" / "a_1.jpg")
    for root in (tmp_path, tmp_path / "nowhere"):
        line = rf"images/val/\*\.jpg and groundTruth/val/\*\.mat or [^\n]*human[^\n]*{re.escape(BSDS_PAGE)}[^\n]*$"
        with pytest.raises(FileNotFoundError, match=line) as caught:
            bsds(root, "val")
        assert str(root) in str(caught.value)
        with pytest.raises(FileNotFoundError, match=rf"images/\*\.jpg and labels/\*\.png.*{re.escape(LABELME_PAGE)}"):
            labelme(root)


def test_half_an_example_says_what_it_lacks_and_two_datasets_must_be_told_apart(tmp_path):
    for base in ("bsds300", "BSR/BSDS500/data"):
        write_image(tmp_path / base / "images" / "test" / "1.jpg")
        write_mat(tmp_path / base / "groundTruth" / "test" / "3.mat", HALVES)
    with pytest.raises(ValueError, match=r"^root must hold one BSDS: got .*BSR.*bsds300"):
        bsds(tmp_path)
    one, three = bsds(tmp_path / "BSR")
    assert one.image().shape == (4, 5, 3) and same(three.annotations(), [HALVES])
    with pytest.raises(FileNotFoundError, match=r"^the ground truth of 1 must be in '.*1\.mat': got no such file"):
        one.annotations()
    with pytest.raises(FileNotFoundError, match=r"^the photograph 3 must be in '.*3\.jpg': got no such file"):
        three.image()


def test_wrong_splits_and_folders_that_do_not_fit_get_one_line(tmp_path):
    images, labels = tmp_path / "images", tmp_path / "labels"

    def refused(message, read=lambda: folder(images, labels)):
        with pytest.raises((FileNotFoundError, ValueError), match=f"^{message}"):
            read()

    refused("split must be one of 'train', 'val', 'test': got 'all'", lambda: bsds(tmp_path, "all"))
    refused("split must be None for LabelMe, which has no splits", lambda: labelme(tmp_path, "test"))
    refused("images must be a folder: got '.*images'")
    images.mkdir()
    refused("labels must be a folder")
    labels.mkdir()
    refused("no photograph in '.*images'")
    write_image(images / "a.jpg")
    refused("no label image in '.*labels'")
    write_png(labels / "a" / "1.png", HALVES)
    write_png(labels / "a" / "2.png", HALVES.T)
    (example,) = folder(images, labels)
    refused(r"the ground truth of a must have one shape, \(4, 5\): got \(5, 4\)", example.annotations)
    write_png(labels / "a.png", HALVES)
    refused("the ground truth of a must be a file or a folder: got 'a.png and a/'")
    write_image(images / "a.png")
    refused(r".*images must have one file of a name: got 'a\.jpg and a\.png'")
    refused("unlabeled must be a whole number", lambda: folder(images, labels, unlabeled=0.5))


def assert_one_line(path, message):
    """The message is one line that names the file, and short enough to read."""
    with pytest.raises(ValueError, match=message) as caught:
        read_labels(path)
    text = str(caught.value)
    assert "\n" not in text and str(path) in text and len(text) < 600


GOOD, RUN = seg_text(STRIPES), "0 0 0 4"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "have a header with width and height"),
        (GOOD.replace("data", "date"), "a line 'data'"),
        (GOOD.replace("width 5", "broad 5"), "KeyError: 'width'"),
        (GOOD.replace("width 5", "width five"), "ValueError"),
        (GOOD.replace(RUN, "0 0 0 4.5"), "four whole numbers"),
        (GOOD.replace(RUN, f"{2**40} 0 0 4"), r"hold labels below 2\^31"),
        (GOOD.replace(RUN, "0 0 0 5"), r"runs inside 5 x 4 pixels: got \[0, 0, 0, 5\]"),
        (GOOD.replace(RUN, "0 -1 0 4"), "runs inside"),
        (GOOD.replace(RUN, "-1 0 0 4"), "segments from 0"),
        (GOOD.replace(RUN, "0 3 0 4"), "name each of 5 x 4 pixels once: got '20 pixels in 4 runs'"),
        (GOOD.replace("width 5", f"width {10**15}"), "have 1 to 134217728 pixels"),
        (GOOD.replace("ascii cr", "binary map"), "have format ascii cr: got 'binary map'"),
        (seg_text(STRIPES, "flipflop 1\n"), "have flipflop 0: got '1'"),
    ],
)
def test_damaged_seg_files_get_one_clear_line(tmp_path, text, message):
    path = tmp_path / "1.seg"
    path.write_text(text)
    assert_one_line(path, message)


def test_every_cut_and_many_flips_of_a_mat_file_give_labels_or_one_clear_line(tmp_path):
    path = tmp_path / "1.mat"
    write_mat(path, HALVES, STRIPES)
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    damaged = [whole[:stop] for stop in range(0, len(whole), 16)]
    for _ in range(150):
        flipped = bytearray(whole)
        flipped[rng.integers(len(whole))] ^= 1 << rng.integers(8)
        damaged.append(bytes(flipped))
    refused = 0
    for content in damaged:
        path.write_bytes(content)
        try:
            assert all(image.dtype == np.int32 and image.ndim == 2 for image in read_labels(path))
        except ValueError as error:
            refused += 1
            assert str(path) in str(error) and "\n" not in str(error)
    assert refused > len(damaged) // 3


ANNOTATIONS = [  # that are none
    {"other": 1},
    {"groundTruth": 5.0},
    {"groundTruth": np.empty((1, 0), object)},
    {"groundTruth": np.array([[{"Boundaries": HALVES}]], object)},
    {"groundTruth": np.array([[{"Segmentation": HALVES + 0.5}]], object)},
]


def test_other_files_than_of_labels_get_one_clear_line(tmp_path):
    for content in ANNOTATIONS:
        savemat(tmp_path / "1.mat", content)
        assert_one_line(tmp_path / "1.mat", "must be a MATLAB file with BSDS's groundTruth")
    for name in ("1.png", "1.tif", "1.npy", "1.mat", "1.seg"):
        for content in (b"", b"no such format", b"\x89PNG\r\n\x1a\nbut no more"):
            (tmp_path / name).write_bytes(content)
            assert_one_line(tmp_path / name, re.escape(name))
    np.save(tmp_path / "a.npy", np.ones((2, 2)))
    assert_one_line(tmp_path / "a.npy", "must hold whole numbers or 8-bit colors: got 'float64'")
    np.save(tmp_path / "a.npy", np.full((2, 2), 2**40))
    assert_one_line(tmp_path / "a.npy", r"must hold labels below 2\^31: got 1099511627776")
