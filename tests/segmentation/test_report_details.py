"""The report's row of details, its ten answers, and what a verdict says that is not known."""

import base64
import io
import re
from itertools import pairwise

import numpy as np
import pytest
from PIL import Image

import spinseg as ss
from spinseg.image.render import graded_boundaries, outlined, outlines
from spinseg.sampler.convergence import Quantity
from spinseg.sampler.diagnostics import Diagnostics
from spinseg.segmentation.files import REPORT_DETAILS
from spinseg.segmentation.presets.photo import details_of
from spinseg.segmentation.report.pictures import downsample_labels, draw_words, reduced, spread_draws
from spinseg.segmentation.schedule import Schedule
from spinseg.segmentation.verdict import verdict_sentences

USUAL, AUTOMATIC = ss.Photo(), Schedule(2)
DETAILS = [USUAL.detail if abs(detail - USUAL.detail) < 0.1 else detail for detail in REPORT_DETAILS]

pytestmark = pytest.mark.xdist_group("report_details")  # they share a segmentation


@pytest.fixture(scope="module")
def found(picture):
    return ss.segment(picture, rng=3, sweeps=24)


@pytest.fixture(scope="module")
def text(found, tmp_path_factory):
    return saved(found, tmp_path_factory.mktemp("report"))


def saved(segmentation, folder):
    segmentation.save(folder, ["report.html"])
    return (folder / "report.html").read_text()


def pixels(source):
    """The numbers in the file of a picture, from its data URL: of a PNG with a palette, the indices."""
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(source.partition(",")[2]))))


def layers(text):
    """The layers of outlines: the CSS classes, the text and the source of each."""
    return re.findall(r'<div class="(layer [^"]*)"><img alt="([^"]*)" src="([^"]*)">', text)


def test_each_position_shows_the_labels_of_its_detail(found, text):
    """It fails if two pictures are exchanged, or if a label counts the regions of another one."""
    stops = re.findall(r'id="d(\d)" style="--i:(\d)"( checked)?><label for="d(\d)"[^>]*>(.*?)</label>', text)
    shown = layers(text)
    assert len(stops) == len(shown) == len(DETAILS)
    drawn = []
    for i, (detail, stop, (css, alt, source)) in enumerate(zip(DETAILS, stops, shown, strict=True)):
        at = found.at(detail)
        is_chosen = detail == found.detail
        assert stop[0] == stop[3] == str(i) and stop[1] == str(i + 1) and bool(stop[2]) is is_chosen
        words = re.sub(r"<[^>]*>", "", stop[4])
        regions = f"{at.n_clusters} region{'' if at.n_clusters == 1 else 's'}"
        assert words == f"{detail:g} {regions}{' chosen' if is_chosen else ''}"
        assert css.split() == ["layer", f"d{i}", *(["chosen"] if is_chosen else [])]
        assert alt == f"Outlines of {regions} at level of detail {detail:g}"
        drawn.append(pixels(source))
        np.testing.assert_array_equal(drawn[-1], outlines(at.labels))
    assert any((a != b).any() for a, b in pairwise(drawn))


def test_numbers_belong_to_the_chosen_detail_which_need_not_be_one_of_the_usual(found, tmp_path):
    text = saved(found.at(0.7), tmp_path)
    parts = text.split('<div class="layer ')[1:]
    assert len(parts) == len(DETAILS) + 1
    assert [part.startswith("d4 chosen") for part in parts] == [i == 4 for i in range(7)]
    assert ["<b style" in part.split("</div>")[0] for part in parts] == [i == 4 for i in range(7)]
    for i in range(len(parts)):
        assert f"#d{i}:checked ~ * .d{i}" in text
    assert text.count("The rest of this report uses level 0.7.") == 6


def test_the_report_is_sound_and_runs_nothing(text):
    """Elements are closed in order, ids are unique, labels name an element, and there is no script."""
    opened = []
    for closes, tag, attributes, is_empty in re.findall(r'<(/?)(\w+)((?:[^>"/]|"[^"]*")*)(/?)>', text):
        assert tag != "script" and not re.search(r"\son\w+=", attributes)
        if closes:
            assert opened.pop() == tag
        elif not is_empty and tag not in ("meta", "img", "input", "br"):
            opened.append(tag)
    ids, wanted = re.findall(r' id="([^"]*)"', text), re.findall(r' for="([^"]*)"', text)
    assert not opened and len(set(ids)) == len(ids) and wanted and set(wanted) <= set(ids)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    assert policy == "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    places = [text.index(words) for words in ('class="notice', 'class="stage"', "How probable", "Ten draws")]
    places += [text.index(words) for words in ("<h2>Regions", "<h2>Sampling")]
    assert places == sorted(places)


@pytest.mark.parametrize("options", [{"preset": "paper"}, {"estimate": "best"}])
def test_where_draws_have_no_detail_there_is_no_row(options, picture, tmp_path):
    each = ss.segment(picture[:40, :50], sweeps=4, rng=0, **options)
    text = saved(each, tmp_path)
    assert 'name="detail"' not in text and "<fieldset" not in text
    ((css, _, source),) = layers(text)
    assert css == "layer only"
    np.testing.assert_array_equal(pixels(source), outlines(each.labels))


def test_a_volume_has_a_report_of_one_plane(tmp_path):
    volume = np.zeros((6, 24, 30))
    volume[2:, 5:20, 8:20] = 1
    each = ss.segment(volume, sweeps=4, rng=0)
    text = saved(each, tmp_path)
    assert each.preset.detail == 0.5  # which is near none of the others
    for (_, _, source), detail in zip(layers(text), sorted([0.5, *REPORT_DETAILS]), strict=True):
        np.testing.assert_array_equal(pixels(source), outlines(each.at(detail).labels[each._plane]))
    assert "have not been validated against human annotations for volumes." in text


def test_a_boundary_is_drawn_the_brighter_the_more_probable_it_is():
    for gray in (0, 128, 255):
        ground = np.full((1, 50, 3), gray, np.uint8)
        drawn = graded_boundaries(ground, np.linspace(0, 1, 50)[None]).astype(float)
        lightness = drawn[0] @ [0.299, 0.587, 0.114]
        np.testing.assert_allclose(drawn[0, 0], 0.4 * gray, atol=1)  # without a boundary, the dimmed picture
        assert (np.diff(lightness[4:]) > -0.5).all() and lightness[-1] > 235  # from about 8% on


def test_ten_answers_are_draws_of_all_details_and_chains(found):
    places = spread_draws(found.chains)
    components = [found.chains.component[draw] for _, draw in places]
    assert len(set(places)) == 10 and components == sorted(components)
    assert max(np.diff([0, *np.array(details_of(found.chains.n_components))[components], 1])) < 0.2
    assert {chain for chain, _ in places} == set(range(found.chains.n_chains))


@pytest.mark.parametrize(("sweeps", "chains", "wanted"), [(2, 1, 1), (2, 2, 2), (6, 2, 3), (40, 1, 10)])
def test_there_are_no_more_answers_than_draws(sweeps, chains, wanted):
    model = ss.Model(ss.SiteGraph(3, [[0, 1], [1, 2]]), ss.PoissonGamma([1, 2, 9]), ss.DirichletProcess(1.0))
    drawn = ss.sample(model, sweeps, chains, burn_in=sweeps // 2, rng=0)
    places = spread_draws(drawn)
    assert wanted <= len(set(places)) == len(places) <= min(10, chains * (sweeps - sweeps // 2))
    assert not draw_words(drawn, places[0], "cluster").startswith("Detail")


def test_the_report_shows_the_answers_and_says_what_each_is(found, text):
    opened = text[text.index("<summary>Ten draws") :]
    opened = opened[: opened.index("</details>")]
    figures = re.findall(r'<img alt="([^"]*)" src="([^"]*)"></div><figcaption>([^<]*)<', opened)
    rgb, step = reduced(found.picture, found.sites)
    for (chain, draw), (alt, source, caption) in zip(spread_draws(found.chains), figures, strict=True):
        labels, detail = found.chains.labels[chain, draw], (found.chains.component[draw] + 0.5) / 12
        regions = f"{np.unique(labels).size} region{'' if labels.max() == 0 else 's'}"
        assert alt == caption == f"Detail {detail:.2f}: {regions}, chain {chain + 1}"
        exact = outlined(rgb, downsample_labels(labels[found.sites], step)).astype(float)
        gaps = [np.abs(pixels(other) - exact).mean() for _, other, _ in figures]
        assert gaps[figures.index((alt, source, caption))] == min(gaps)  # JPEG is not exact


def judged(error, r_hat, agreement):
    """Diagnostics with these numbers."""
    row = Quantity("x", (1.0, 1.0), 1.0, r_hat, 50.0, 50.0, None)
    return Diagnostics(agreement, error, r_hat, {"x": row}, "Judged.")


@pytest.mark.parametrize("error", [0.0, 0.01, 0.05])
@pytest.mark.parametrize("r_hat", [1.0, 1.3, np.inf])
@pytest.mark.parametrize("agreement", [0.7, 0.99])
def test_the_advice_is_not_to_sample_longer_where_the_program_chose_how_long(error, r_hat, agreement):
    text = verdict_sentences(judged(error, r_hat, agreement), USUAL, 400, AUTOMATIC)
    converged = error <= 0.04 and r_hat <= 1.05
    assert "sweeps halve" not in text and "more sweeps" not in text and "longer" not in text
    assert ("or run four times as many chains" in text) is not converged
    assert ("regions have not" in text or "Neither" in text) is (agreement < 0.9) is ("at least 0.9 needed" in text)
    assert ("uncertain probabilities have an error" in text) is (converged and agreement > 0.9)
    assert ("at most 0.04 needed" in text, "at most 1.05 needed" in text) == (error > 0.04, r_hat > 1.05)
    assert len(re.findall(r"[.] |[.]$", text)) == (2 if converged else 3)  # advice takes a third sentence
    asked = verdict_sentences(judged(error, r_hat, agreement), USUAL, 40, Schedule(2, 40))
    assert ("Four times as many sweeps halve the error." in asked) is (error > 0.04 and r_hat <= 1.05)
    assert ("If each is level, run more chains." in asked) is (r_hat > 1.05)


def test_chains_from_one_place_are_named():
    text = verdict_sentences(judged(0.01, 1.0, 0.99), ss.Photo(init="greedy"), 400, AUTOMATIC)
    assert "All chains started from the same place" in text
    assert "started from" not in verdict_sentences(judged(0.01, 1.0, 0.99), USUAL, 400, AUTOMATIC)


def test_what_was_not_compared_with_people_is_said(picture, found):
    small, fast = picture[:40, :50], {"sweeps": 4, "rng": 0}
    assert found.calibrated and found.summary()["calibrated"] is True and "human annotations" not in found.verdict
    opaque = np.dstack([small, np.full(small.shape[:2], 255, np.uint8)])
    assert found.at(0.2).calibrated and ss.segment(opaque, "photo", **fast).calibrated
    each = ss.segment(np.stack(4 * [small.mean(axis=2)]), channel_axis=None, **fast)
    assert each.verdict.endswith(" These probabilities have not been validated against human annotations for volumes.")
    assert each.calibrated is each.summary()["calibrated"] is False
    assert each.summary()["verdict"] == each.verdict
