"""The report: it says the most important thing first, in plain words, and it is made of anything that can be saved."""

import base64
import dataclasses
import io
import re
from html import unescape
from importlib.resources import files

import numpy as np
import pytest
from PIL import Image
from scipy import ndimage

import spinseg as ss
from effort import effort
from spinseg.image.picture import as_picture, cielab
from spinseg.segmentation.report.charts import N_COLORS, bar_chart, line_chart
from spinseg.segmentation.report.page import THEME, report
from spinseg.segmentation.report.pictures import MAX_NUMBERS, central_pixel

APP_STYLE = files("spinseg.app").joinpath("static", "style.css").read_text(encoding="utf-8")

pytestmark = pytest.mark.xdist_group("report")  # they share a segmentation


def blocks() -> np.ndarray:
    """A picture of four grounds, one of them in two places."""
    image = np.full((60, 90), 0.1)
    image[10:50, 10:30] = image[10:50, 60:80] = 0.9
    image[20:30, 40:50] = 0.5
    return image


@pytest.fixture(scope="module")
def segmented():
    return ss.segment(blocks(), rng=0, sweeps=20, chains=2)


def page(found, **changes):
    """The report of a segmentation, with some of its summary changed, and parts of it by their name."""
    shown = {"picture": found.picture, "labels": found.labels, "boundary": found.boundary_probability}
    shown |= {"chains": found.chains}
    shown |= {name: changes.pop(name) for name in list(changes) if name in shown}
    return report({**found.summary(), **changes}, *shown.values())


def texts(chart):
    """What is written in a chart."""
    return [unescape(text) for text in re.findall(r"<text[^>]*>([^<]*)</text>", chart)]


def seen(text):
    """The words of a page as they are read, without its pictures and its style."""
    body = re.sub(r'src="[^"]*"|<style>.*?</style>', "", text, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", body)).split())


def rows(text):
    """The cells of the table of regions, row by row."""
    table = text[text.index("<thead>") : text.index("</tbody>")]
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in table.split("<tr>")[1:]]


def numbers(text):
    """The numbers over the picture: for each its region, and its place from the top and from the left, in shares."""
    found = re.findall(r'<b style="left:([\d.]+)%;top:([\d.]+)%">(\d+)</b>', text)
    return {int(region): (float(top) / 100, float(left) / 100) for left, top, region in found}


@pytest.mark.parametrize(
    ("regions", "probabilities", "color", "headline"),
    [
        (True, True, "good", "The regions and their probabilities have converged."),
        (True, False, "poor", "The regions have converged, but their probabilities have not."),
        (False, True, "poor", "The probabilities have converged, but the regions have not."),
        (False, False, "poor", "Neither the regions nor their probabilities have converged."),
        (None, None, "unknown", "There are too few chains or draws to assess convergence."),
    ],
)
def test_a_plain_sentence_stands_before_the_verdict(segmented, regions, probabilities, color, headline):
    found = {"regions_converged": regions, "probabilities_converged": probabilities}
    text = page(segmented, **found, verdict="R-hat <is> what it is.")
    more = r'<details class="fine"(.*?)><summary>Details</summary><p>(.*?)</p></details>'
    bar = re.search(r'<div class="notice (\w+)"><p class="headline">(.*?)</p>' + more, text)
    counted = f"spinseg found {segmented.n_clusters} regions at level of detail {segmented.detail:g}. "
    assert bar[1] == color and bar[2].startswith(counted + headline) and bar[4] == "R-hat &lt;is&gt; what it is."
    assert (bar[3] == " open") is (color != "good")
    assert ("come from chains that have not converged" in seen(text)) is (probabilities is False)


def test_each_number_stands_beside_its_meaning(segmented):
    text = seen(page(segmented, r_hat=1.234, ess=5678.9, agreement=0.876, standard_error=0.0312))
    assert "R-hat 1.23 It compares chains" in text and "Effective sample size 5,679 Equivalent to" in text
    assert "Agreement 0.88 How well half of the draws" in text and "Standard error 0.031 For boundary" in text
    text = seen(page(segmented, r_hat="infinite", ess=None))
    assert "R-hat infinite It compares" in text and "Effective sample size" not in text


def test_every_boundary_stands_with_its_standard_error(segmented):
    boundary = {"region": 1, "neighbor": 2, "length": 1234, "probability": 0.456, "standard_error": 0.078}
    text = seen(page(segmented, boundaries=[boundary] * 60))
    assert "1, 2 1,234 0.46 0.078" in text and "and 20 more certain, in result.json" in text
    assert "1, 2 1,234 0.46 - " in seen(page(segmented, boundaries=[{**boundary, "standard_error": None}]))
    assert "Table of boundaries" not in page(segmented, boundaries=[])


def cut(chains, sweeps):
    """Chains as Ctrl-C within the burn-in leaves them."""
    n = sweeps * chains.n_components
    traces = {name: trace[:, :n] for name, trace in chains._traces.items()}
    return dataclasses.replace(chains.after(chains.n_sweeps), burn_in=chains.burn_in, _traces=traces)


@pytest.mark.parametrize("sweeps", [0, 1, 5])
def test_an_interruption_is_reported_and_leaves_no_probabilities(segmented, sweeps):
    regions = [{**region, "probability": None, "boundary": None} for region in segmented.region_rows]
    left = {"chains": cut(segmented.chains, sweeps), "interrupted": True, "sweeps_done": sweeps}
    text = page(segmented, **left, n_clusters_posterior={}, regions_converged=None, regions=regions)
    reported = "before one sweep was finished" if sweeps == 0 else f"after {sweeps} of 20 sweeps"
    assert f"Sampling was interrupted {reported}" in seen(text)
    assert text.index("Sampling was interrupted") < text.index("to assess convergence")
    assert all(row[-2:] == ["-", "-"] for row in rows(text)[1:])
    assert "How probable each boundary is" not in text and "answers" not in seen(text) and "nothing was drawn" in text
    assert text.count("no sweep was finished") == (2 if sweeps == 0 else 0)
    text = page(segmented, interrupted=True, sweeps_done=15)  # with draws
    assert "after 15 of 20 sweeps" in seen(text) and "no probabilities" not in text


def test_captions_tell_which_clusters_and_which_sweeps_are_counted(segmented):
    text = seen(page(segmented))
    assert f"{segmented.n_clusters} regions at" in text and "cut into regions" not in text
    assert text.count("burn-in (shaded) included") == 2 and "its share of the sweeps after the burn-in" in text
    cut = ss.segment(blocks(), "classes", rng=0, sweeps=20, regions=True)
    text = seen(page(cut))
    assert f"{cut.n_clusters} clusters after cutting into regions" in text
    assert f"before clusters are cut into regions, of which the segmentation has {len(cut.regions)}" in text
    whole = ss.segment(blocks(), "classes", rng=0, sweeps=20)
    text = seen(page(whole))
    assert f"{whole.n_clusters} clusters in {len(whole.regions)} regions" in text and "cut into regions" not in text


@pytest.mark.parametrize("shape", [(1, 1), (1, 3000), (3000, 1), (2, 2500), (1999, 3), (1501, 1499)])
@pytest.mark.parametrize("inside", effort(["one pixel"], ["all", "one pixel", "none"]))
def test_pictures_of_any_shape_and_mask_are_shown(segmented, shape, inside):
    labels = np.full(shape, inside == "all", np.int32)
    labels[shape[0] // 2, shape[1] // 3] = inside != "none"
    region = {**segmented.region_rows[0], "label": 1, "area": 1, "bbox": [0, 0, *shape]}
    shown = {"picture": as_picture(np.zeros(shape)), "labels": labels, "boundary": np.zeros(shape, np.float32)}
    text = page(segmented, **shown, regions=[region], shape=list(shape))
    assert text.count("<img") == 4 and len(numbers(text)) == (0 if inside == "none" else 1)
    means = re.search(r'alt="Regions in their mean colors" src="data:image/\w+;base64,([^"]*)"', text)[1]
    colors = np.asarray(Image.open(io.BytesIO(base64.b64decode(means))).convert("RGB"))
    assert max(colors.shape) <= 1000 and (colors < 255).any() == (inside != "none")  # one pixel is seen as well


@pytest.mark.parametrize("preset", ["photo", "classes"])  # clusters of one region each, and of several
def test_every_region_has_its_number_well_inside(preset):
    found = ss.segment(blocks(), preset, rng=0, sweeps=20)
    places = numbers(page(found))
    assert sorted(places) == list(range(1, len(found.region_rows) + 1))
    assert (len(places) == found.n_clusters) is (preset == "photo")
    for region in found.region_rows:
        row, column = (int(share * length) for share, length in zip(places[region["region"]], (60, 90), strict=True))
        piece = ndimage.label(found.labels == region["label"])[0]
        assert piece[row, column] and np.count_nonzero(piece == piece[row, column]) == region["area"]
        assert np.all(found.labels[row - 3 : row + 4, column - 3 : column + 4] == region["label"])


def test_the_largest_and_the_most_doubtful_regions_are_numbered_and_not_on_the_saved_overlay(segmented, tmp_path):
    labels = np.arange(1, 31, dtype=np.int32).repeat(3)[None] + np.zeros((60, 1), np.int32)
    regions = [
        {**segmented.region_rows[0], "region": i + 1, "label": i + 1, "area": 180, "bbox": [0, 3 * i, 60, 3 * i + 3]}
        | {"boundary": 1 - i / 30}
        for i in range(30)
    ]
    text = page(segmented, labels=labels, regions=regions)
    half = MAX_NUMBERS // 2
    assert sorted(numbers(text)) == [*range(1, half + 1), *range(31 - half, 31)]
    assert "below (of the largest, and of those with the least probable outlines)" in text
    segmented.save(tmp_path)
    drawn = np.asarray(Image.open(tmp_path / "overlay.png"))
    np.testing.assert_array_equal(drawn, ss.image.render.overlay(segmented.picture, segmented.labels))


def test_planes_of_a_volume_are_numbered_where_clusters_are_regions(segmented):
    regions = [{**region, "bbox": [0, *region["bbox"][:2], 4, *region["bbox"][2:]]} for region in segmented.region_rows]
    text = page(segmented, regions=regions, shape=[4, 60, 90])
    assert numbers(text) == numbers(page(segmented))
    assert "of which one plane is shown" in text and "Bounding box: first plane, row and column" in text
    doubled = [*regions, {**regions[0], "region": len(regions) + 1}]
    assert numbers(page(segmented, regions=doubled, shape=[4, 60, 90])) == {}


def test_a_place_inside_is_in_the_thick_part_and_near_the_middle():
    key = np.zeros((30, 60), bool)
    key[14:16, :40] = key[5:25, 40:] = True
    row, column = central_pixel(key)
    assert 12 <= row <= 17 and column >= 45
    row, column = central_pixel(np.ones((9, 101), bool))
    assert (row, column) == (4, 50)
    assert central_pixel(np.ones((1, 1), bool)) == (0, 0)


def test_labels_are_left_out_of_the_table_where_each_is_one_region(segmented):
    pieces = [{**region, "label": 1} for region in segmented.region_rows]
    for text, has_labels in ((page(segmented), False), (page(segmented, regions=pieces), True)):
        table = rows(text)
        assert ("Label" in table[0]) is has_labels
        assert len({len(row) for row in table}) == 1 and len(table) == 1 + len(segmented.region_rows)
    many = [{**segmented.region_rows[0], "region": i} for i in range(50)]
    table = rows(page(segmented, regions=many))
    assert len(table) == 42 and table[-1] == ["and 10 smaller, in result.json"]


def y_ticks(chart):
    """The numbers of the axis that goes up."""
    return [unescape(text) for text in re.findall(r'text-anchor="end">([^<]*)</text>', chart)]


@pytest.mark.parametrize("scale", [1e-4, 0.05, 0.3, 1, 7, 40, 999, 1e5, 1e9])
@pytest.mark.parametrize("base", [0, 5000, -123456])
def test_ticks_are_distinct_and_lie_where_they_say(base, scale):
    values = base + scale * np.linspace(0, 1, 50)[None]
    ticks = y_ticks(line_chart(values, "x"))
    assert 2 <= len(ticks) <= 7 and len(set(ticks)) == len(ticks) and "-0" not in [t.rstrip("0.") for t in ticks]
    steps = np.diff([float(tick.replace(",", "")) for tick in ticks])
    assert np.allclose(steps, steps[0], rtol=1e-6) and steps[0] > 0


@pytest.mark.parametrize("counts", [[[3]], [[3, 3]], [[3, 4]], [[1, 2, 3]], [[9, 250, 40]]])
def test_numbers_of_clusters_and_sweeps_are_whole(counts):
    chart = line_chart(np.array(counts, np.int32), "x")
    assert all(re.fullmatch(r"[\d,]+|sweep", text) for text in texts(chart))
    assert len(set(y_ticks(chart))) == len(y_ticks(chart)) >= 2


def test_ticks_have_the_digits_they_need():
    assert y_ticks(line_chart(5000 + np.linspace(0, 0.05, 9)[None], "x")) == ["5,000.00", "5,000.02", "5,000.04"]
    drift = 10235.3 + 1e-8 * np.random.default_rng(0).random((2, 40))  # which differ by rounding alone
    assert max(map(len, y_ticks(line_chart(drift, "x")))) <= len("10,235.5")


def test_no_sweeps_and_no_draws_give_a_chart_that_says_so():
    assert texts(line_chart(np.zeros((2, 0)), "x")) == ["no sweep was finished"]
    assert texts(bar_chart({}, "x", "clusters")) == ["nothing was drawn"]
    assert "nan" not in line_chart(np.full((1, 3), -np.inf), "x")


@pytest.mark.parametrize("n_chains", [1, 2, 4, 8, 9, 20])
def test_a_legend_names_the_chains_while_each_has_a_color(n_chains):
    chart = line_chart(np.arange(10.0) + np.zeros((n_chains, 1)), "x")
    used = re.findall(r'class="line (c\d)"', chart)
    assert len(used) == n_chains
    if 2 <= n_chains <= N_COLORS:
        assert texts(chart)[-n_chains - 1 :] == ["chain", *map(str, range(1, n_chains + 1))]
        assert re.findall(r'class="key (c\d)"', chart) == used == [f"c{i}" for i in range(n_chains)]
    else:
        assert "chain" not in texts(chart)


def test_all_text_lies_within_the_chart():
    for values in (-1.5e6 + 0.7 * np.arange(8 * 9).reshape(8, 9), np.arange(16).reshape(8, 2)):
        for x, y, anchor, text in re.findall(
            r'<text x="([-\d.]+)" y="([-\d.]+)" text-anchor="(\w+)">([^<]*)<', line_chart(values, "x")
        ):
            start = float(x) - {"start": 0, "middle": 0.5, "end": 1}[anchor] * 7 * len(text)
            assert start >= 0 and start + 7 * len(text) <= 360 and 10 <= float(y) <= 200


def test_lines_that_leave_the_range_are_cut_off():
    chart = line_chart(np.array([[-1e6, -1e6, -1e6, 1.3, 2.0, 1.5, 1.2]]), "x", shaded=4)
    path = re.search(r'class="line c0" d="([^"]*)"', chart)[1]
    assert path.count("M") == 1 and path.count("L") == 4  # from the last one below on
    early = line_chart(np.array([[1.0, 2.0, 3.0]]), "x", shaded=3)  # within the burn-in all of it counts
    assert y_ticks(early)[-1] == "3.0"


def themes(style):
    """The colors that a style sheet names, in light and in dark."""
    found = [
        dict(re.findall(r"--(\w+): (#\w{6});", theme)) for theme in re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    ]
    assert len(found) == 2
    return found


def test_the_web_app_has_the_colors_of_the_report():
    for ours, theirs in zip(themes(THEME), themes(APP_STYLE), strict=True):
        shared = ours.keys() & theirs.keys()
        assert len(shared) > 10 and {name: ours[name] for name in shared} == {name: theirs[name] for name in shared}


def test_the_colors_of_chains_differ_from_each_other_and_from_the_ground():
    for values in themes(THEME):
        colors = [values["ground"], *(values[f"c{i}"] for i in range(N_COLORS))]
        places = cielab(np.array([list(bytes.fromhex(color[1:])) for color in colors], np.uint16) * 257)
        gaps = np.linalg.norm(places[:, None] - places, axis=-1) + np.diag(np.full(len(places), np.inf))
        assert gaps.min() > 35 and np.abs(places[1:, 0] - places[0, 0]).min() > 30


def test_the_page_needs_nothing_else(segmented):
    text = page(segmented, source="a <b> & 'c'.png")
    assert not re.search(r"https?://|url\(|@import|<script|<link", text)
    assert all(address.startswith("data:image/") for address in re.findall(r'(?:src|href)="([^"]*)"', text))
    assert "<h1>a &lt;b&gt; &amp; &#x27;c&#x27;.png</h1>" in text and "$" not in text
