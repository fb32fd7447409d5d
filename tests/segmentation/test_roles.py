"""Channels have roles: outlines come from some, and each bright blob of another marks an object of its own."""

import json

import numpy as np
import pytest
import tifffile

import spinseg as ss
from command import spinseg
from rendered_cells import f1_of_objects, rendered_cells
from spinseg.image.roles import Roles
from spinseg.segmentation.batch import segment_file, segment_files
from spinseg.segmentation.files import report_of
from spinseg.segmentation.problem import prepare

ROLES = {"outlines": 0, "one_each": 1}
FAST = {"sweeps": 12, "chains": 1, "rng": 0}
PLAIN = {"preset": "paper", "count_weight": 1.0, "sweeps": 4, "chains": 1, "rng": 0}


@pytest.fixture(scope="module")
def cells():
    """Cells that fill the plane."""
    return rendered_cells(0)


@pytest.fixture(scope="module")
def seg(cells):
    """Their segmentation by roles."""
    return ss.segment(cells.image, **ROLES, rng=0)


def n_markers(problem):
    """How many markers the sites have."""
    return np.unique(problem.model.seeds[problem.model.seeds > 0]).size


def marked_labels(seg):
    """The labels of regions with a marker, and 0."""
    marked = [row["label"] for row in seg.region_rows if row["marked"]]
    return np.where(np.isin(seg.labels, marked), seg.labels, 0)


@pytest.mark.parametrize("how", [{}, {"noise": 0.12}, {"gaps": 0.25}, {"everywhere": False}], ids=str)
def test_cells_are_found(how):
    found = []
    for seed in (1, 2):
        cells = rendered_cells(seed, **how)
        found.append(f1_of_objects(cells.truth, marked_labels(ss.segment(cells.image, **ROLES, sweeps=40, rng=seed))))
    assert np.mean(found) >= 0.9, found


def test_every_draw_holds_one_marker_in_each_marked_region(seg):
    seeds = seg.model.seeds
    draws = seg.chains.labels.reshape(-1, seeds.size)
    numbers = np.unique(seeds[seeds > 0])
    assert numbers.size >= 16 and len(draws) > 100
    for draw in draws:
        of_marker = [np.unique(draw[seeds == number]) for number in numbers]
        assert all(each.size == 1 for each in of_marker)
        assert np.unique(np.concatenate(of_marker)).size == numbers.size
    for detail in (0.0, 0.3, 1.0):
        assert sum(row["marked"] for row in seg.at(detail).region_rows) == numbers.size


def test_each_nucleus_has_a_region_of_its_own_on_the_pixels_too(cells, seg):
    middle = [np.bincount(seg.labels[cells.nuclei == n]).argmax() for n in np.unique(cells.nuclei[cells.nuclei > 0])]
    assert np.unique(middle).size >= len(middle) - 1


def test_without_roles_membranes_and_nuclei_are_regions(cells, seg):
    plain = ss.segment(cells.image, rng=0, sweeps=40)
    assert f1_of_objects(cells.truth, plain.labels) < 0.7 < 0.9 < f1_of_objects(cells.truth, seg.labels)
    assert "marked" not in plain.region_rows[0] and plain.outlines is None


def test_tables_and_pictures_show_all_channels(cells, seg):
    picture = ss.as_picture(cells.image)
    assert np.array_equal(seg.picture.codes, picture.codes) and seg.read_as.startswith("2 channels")
    row = seg.region_rows[0]
    mean = np.rint(picture.rgb[seg.labels == row["label"]].mean(axis=0)).astype(int)
    assert row["color"] == "#{:02x}{:02x}{:02x}".format(*mean) and mean[1] > 0
    assert "outlines from channel 0, one object for each bright blob of channel 1" in report_of(seg)


def test_the_call_is_kept_and_repeats(cells):
    seg = ss.segment(cells.image, outlines=[np.int64(0)], one_each=(1,), **FAST)
    assert (seg.outlines, seg.one_each) == (0, 1) and "outlines=0, one_each=1" in seg.python_code
    again = eval(seg.python_code, {"ss": ss, "image": cells.image})
    assert np.array_equal(again.labels, seg.labels)
    summary = json.loads(json.dumps(seg.summary()))
    assert (summary["outlines"], summary["one_each"]) == (0, 1) and summary["taken_for"] is None
    assert seg.preset.name == "measured" and not seg.calibrated and "channels have roles" in seg.verdict


def test_outlines_alone_are_those_of_the_channel_and_no_markers():
    cells = rendered_cells(3)
    seg = ss.segment(cells.image, outlines=0, **FAST)
    alone = ss.segment(cells.image[..., 0], "measured", **FAST)
    assert seg.model.seeds is None and np.array_equal(seg.labels, alone.labels)
    assert "one_each" not in seg.python_code and "marked" not in seg.region_rows[0]


def test_one_each_alone_takes_outlines_from_the_others():
    cells = rendered_cells(4)
    by_rest, by_name = (prepare(cells.image, ss.Auto(), one_each=1, outlines=channel) for channel in (None, 0))
    assert np.array_equal(by_rest.sites, by_name.sites) and np.array_equal(by_rest.model.beta, by_name.model.beta)
    assert n_markers(by_rest) >= 16


@pytest.mark.parametrize("order", [(1, 0, None), (None, 1, 0), (0, None, 1)], ids=str)
def test_channels_of_any_order_and_of_color(order):
    """None stands for a channel of noise; 8 bits are red, green and blue."""
    cells = rendered_cells(5)
    noise = np.random.default_rng(0).uniform(0, 1, cells.truth.shape)
    image = np.dstack([noise if each is None else cells.image[..., each] for each in order])
    roles = {"outlines": order.index(0), "one_each": order.index(1)}
    for given in (image, np.rint(255 * image).astype(np.uint8)):
        assert 16 <= n_markers(prepare(given, ss.Auto(), **roles)) <= 19
    seg = ss.segment(given, **roles, **FAST)
    assert seg.read_as.startswith("an image of") and f1_of_objects(cells.truth, marked_labels(seg)) >= 0.8


def test_several_channels_may_have_a_role():
    cells = rendered_cells(6)
    membranes, nuclei = np.moveaxis(cells.image, -1, 0)
    half = np.arange(nuclei.shape[1]) < 90
    image = np.dstack([membranes, np.where(half, nuclei, 0.1), membranes, np.where(half, 0.1, nuclei)])
    problem = prepare(image, ss.Auto(), outlines=(2, 0), one_each=[1, 3], channel_axis=-1)
    assert problem.provenance["outlines"] == (2, 0) and problem.seen.n_channels == 2
    assert n_markers(problem) >= 16


def test_seeds_win_where_they_overlap_blobs():
    cells = rendered_cells(7)
    first = cells.nuclei[cells.nuclei > 0].min()
    seeds = np.zeros(cells.truth.shape, int)
    seeds[cells.nuclei == first] = 5
    plain, both = (prepare(cells.image, ss.Auto(), seeds=each, **ROLES) for each in (None, seeds))
    assert n_markers(both) == n_markers(plain)
    assert np.array_equal(both.seed_image == 5, seeds == 5) and both.seed_image.max() > 5
    assert both.with_seeds(None) is None  # which has no blobs


def test_a_mask_and_a_reduced_image():
    cells = rendered_cells(8)
    inside = np.zeros(cells.truth.shape, bool)
    inside[10:-10, 10:-10] = True

    class Small(ss.Measured, listed=False):
        max_pixels = 150 * 180 // 4

    problem = prepare(cells.image, Small(), mask=inside, **ROLES)
    assert problem.working_image.step == 2 and not problem.seed_image[~inside].any()
    assert np.unique(problem.seed_image).size - 1 == n_markers(problem) >= 12
    seg = ss.segment(cells.image, Small(), mask=inside, **ROLES, **FAST)
    assert f1_of_objects(np.where(inside, cells.truth, 0), marked_labels(seg)) >= 0.8


def test_a_volume():
    z, y, x = np.indices((12, 32, 48))
    walls = ((x % 24 < 2) | (y % 32 < 2)) * 0.8
    nuclei = sum(np.sqrt((z - 6) ** 2 + (y - 17) ** 2 + (x - middle) ** 2) < 5 for middle in (13, 37)) * 0.8
    volume = np.stack([walls, nuclei], -1) + np.random.default_rng(0).normal(0.1, 0.03, (12, 32, 48, 2))
    seg = ss.segment(np.clip(volume, 0, 1), channel_axis=-1, **ROLES, **FAST)
    assert sum(row["marked"] for row in seg.region_rows) == 2
    assert seg.labels[6, 17, 13] != seg.labels[6, 17, 37]


def test_without_a_blob_there_is_a_warning_and_outlines_decide():
    cells = rendered_cells(9)
    image = cells.image.copy()
    image[..., 1] = 0.1
    with pytest.warns(UserWarning, match=r"^no bright blob was found in channel 1: [^\n]*$"):
        seg = ss.segment(image, **ROLES, **FAST)
    assert seg.model.seeds is None and not any(row["marked"] for row in seg.region_rows)


@pytest.mark.parametrize(
    "roles, line",
    [
        ({"outlines": 2}, "outlines must be among the channels 0 to 1 of this image: got 2"),
        ({"one_each": (1, 7)}, "one_each must be among the channels 0 to 1 of this image: got 7"),
        ({"outlines": 1, "one_each": 1}, "one_each must name other channels than the outlines: got 1"),
        ({"one_each": (0, 1)}, r"one_each must leave a channel for the outlines: got \(0, 1\)"),
        *(
            ({"outlines": wrong}, "outlines must be a channel, or several, counted from 0: got ")
            for wrong in (-1, 1.5, True, "0", (), [0, "a"], [[0, 1]], {0})
        ),
    ],
    ids=str,
)
def test_wrong_roles_are_one_line(roles, line):
    with pytest.raises(ss.InvalidInput, match=rf"^{line}[^\n]*$"):
        ss.segment(np.random.default_rng(0).uniform(size=(20, 30, 2)), **roles)


def test_roles_that_do_not_fit_the_image_or_the_preset():
    for roles in ({"outlines": 0}, {"one_each": 0}):
        (name,) = roles
        for gray in (np.zeros((20, 30)), np.zeros((20, 30, 3), np.uint8)):
            with pytest.raises(ss.InvalidInput, match=f"^{name} must name channels of an image that has several: got"):
                ss.segment(gray, **roles)
    image = np.random.default_rng(0).uniform(size=(20, 30, 2))
    with pytest.raises(ss.InvalidInput, match=r"^one_each must be given with connected clusters only, as in .*paper"):
        ss.segment(image, "paper", **ROLES)
    assert ss.segment(image, outlines=0, **PLAIN).outlines == 0


def test_a_result_with_other_roles_is_not_resumed(tmp_path):
    np.save(tmp_path / "a.npy", rendered_cells(10, shape=(60, 70), n_cells=4).image)
    source, out = str(tmp_path / "a.npy"), tmp_path / "out"
    given = PLAIN | {"outlines": (1, 0)}
    first = segment_file(source, str(out / "a"), given)
    assert first.error is None and first.summary["outlines"] == (1, 0)

    def resumed(**changes):
        ((_, outcome),) = segment_files([source], out, given | changes, resume=True)
        return outcome

    assert resumed().done_before and resumed(outlines=[1, 0]).done_before
    assert "outlines [1, 0], not 0" in resumed(outlines=0).error
    for wrong in ({"outlines": -1}, {"one_each": 0}):
        with pytest.raises(ss.InvalidInput, match=r"^(outlines|one_each) must "):
            resumed(**wrong)


def test_roles_of_nothing_change_nothing():
    picture = ss.as_picture(np.zeros((4, 5)))
    assert Roles.of(None, None) == Roles() and Roles().seen(picture) is picture


def test_the_command_takes_roles(tmp_path):
    image = rendered_cells(11, shape=(60, 70), n_cells=4, nucleus=0.4).image
    tifffile.imwrite(tmp_path / "cells.tif", np.rint(255 * image).astype(np.uint8).transpose(2, 0, 1))
    call = (
        "segment",
        str(tmp_path / "cells.tif"),
        "--out",
        str(tmp_path / "out"),
        "--channel-axis",
        "0",
        "--sweeps",
        "4",
    )
    done = spinseg(*call, "--outlines", "0", "--one-each", "1", "--json", "--quiet")
    (found,) = json.loads(done.stdout)["images"]
    assert (found["outlines"], found["one_each"]) == (0, 1) and "outlines=0, one_each=1" in found["python"]
    for wrong, line in (("5", "--outlines must be among the channels 0 to 1"), ("a", "--outlines must be a channel")):
        failed = spinseg(*call, "--outlines", wrong, "--overwrite")
        assert failed.returncode == 2 and line in failed.stderr and len(failed.stderr.strip().splitlines()) == 1
