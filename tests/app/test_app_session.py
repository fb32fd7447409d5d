"""Sessions without a browser: exports equal what the Python code and the command give, also after a change of settings."""

import asyncio
import json
import re
import shlex
import time
from base64 import b64decode

import numpy as np
import pytest
import tifffile
from PIL import Image

import spinseg as ss
from command import spinseg
from effort import effort, exhaustive
from processes import PATIENCE
from spinseg.app import handlers
from spinseg.app.chain_run import ChainRun, match_labels
from spinseg.app.controls import DIFFERENT_STARTS, PRIOR_CHOICES, UserSettings, controls, page_description
from spinseg.app.run_loop import NotYet
from spinseg.app.session import BACK, CUT, FORBIDDEN, REMOVED, WHOLE, Session
from spinseg.app.words import Refused, in_user_words, refusal
from spinseg.image.contrast import Contrast
from spinseg.image.io import read_picture
from spinseg.image.layout import Reading
from spinseg.image.picture import OTHERWISE_COLOR, OTHERWISE_NO_OPACITY, OTHERWISE_OPACITY, as_picture
from spinseg.image.seeds import reduced_seeds, seed_image
from spinseg.partition.pairs import co_clustering, separation_probability
from spinseg.pictures import PICTURES
from spinseg.sampler.diagnostics import is_enough
from spinseg.sampler.sampler import Sampler
from spinseg.sampler.starts import STARTS
from spinseg.segmentation.presets.preset import Preset
from spinseg.segmentation.report.pictures import spread_draws
from spinseg.segmentation.verdict import one_region_warning, shortfalls, verdict_sentences

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A small picture of four patches with noise."""
    image, rng = np.zeros((90, 120, 3)), np.random.default_rng(0)
    image[:45, :60], image[:45, 60:] = (200, 60, 50), (60, 160, 60)
    image[45:, :40], image[45:, 40:] = (60, 70, 190), (190, 180, 80)
    file = tmp_path_factory.mktemp("page") / "it's a picture.png"
    Image.fromarray((image + rng.normal(0, 25, image.shape)).clip(0, 255).astype(np.uint8)).save(file)
    return file


@pytest.fixture
def opened():
    """Open sessions of pictures; they are closed at the end."""
    made = []

    def open_session(picture, source, **given):
        made.append(Session(picture, str(source), **given))
        return made[-1]

    yield open_session
    for session in made:
        session.loop.close()


@pytest.fixture
def session(opened, path):
    return opened(read_picture(path), path)


async def apply(session, **sent):
    """Apply settings; returns the first frame after it."""
    await session.apply(UserSettings.from_json(sent))
    return latest(session)


async def until(true):
    """Wait for a condition."""
    async with asyncio.timeout(PATIENCE):
        while not true():
            await asyncio.sleep(0.01)


def latest(session):
    return session.loop.frame(0, 0)


async def until_outlined(session):
    """Wait for the outlines of all that was drawn."""
    await until(lambda: latest(session)["outlined"] == latest(session)["sweeps"])


async def run_sweeps(session, sweeps):
    """Run until there are at least this many sweeps, and pause."""
    session.loop.start(None)
    await until(lambda: latest(session)["sweeps"] >= sweeps or session.loop.state != "running")
    await session.loop.pause()


async def sample(session, sweeps, **sent):
    """Apply settings, run until there are at least this many sweeps, and pause."""
    await apply(session, **sent)
    await run_sweeps(session, sweeps)


async def segmentation(session):
    """What is exported."""
    found = []
    await session.export(lambda each: found.append(each) or b"")
    return found[0]


async def repeats(session):
    """The segmentation and what repeats it, after a check that the Python code gives the same."""
    found, reported, names = await segmentation(session), await session.repeat(), {}
    exec(reported["python"], names)
    again = names["found"]
    np.testing.assert_array_equal(found.labels, again.labels)
    np.testing.assert_array_equal(found.boundary_probability, again.boundary_probability)
    np.testing.assert_array_equal(found.chains.labels, again.chains.labels)
    assert found.chains.best_log_posterior == again.chains.best_log_posterior
    assert reported["python"].endswith(found.python_code.removeprefix("import spinseg as ss\n"))
    return found, reported


# --- what repeats a run ---

EXPORTED = [
    {},
    {"start": "one", "chains": 1, "seed": 3},
    {"preset": "paper", "prior": "PitmanYor", "concentration": 2, "discount": 0.3, "chains": 3, "n_sites": 60},
    {"prior": "Potts", "start": "singletons", "min_size": 2, "detail": 0.8},
    {"prior": "MixtureOfFiniteMixtures", "mean_labels": 4, "lam": 3, "count_weight": 0.01, "max_size": 300},
    {"preset": "classes", "prior": "FiniteDirichlet", "n_labels": 5, "chains": 3, "beta": 0.1, "lam": 2},
    {"preset": "classes", "seed": 2, "min_size": 3, "n_sites": 150},
    {"preset": "paper"},
]


@pytest.mark.parametrize("sent", EXPORTED[:: effort(3, 1)], ids=str)
async def test_exports_equal_what_the_python_code_and_the_command_give(session, sent, tmp_path):
    await sample(session, 11, **sent)
    (found, reported), result = await repeats(session), await session.result()
    shown = np.frombuffer(b64decode(result["labels"]), "<u2")
    assert len(set(zip(shown, found.partition, strict=True))) == len(set(shown)) == result["n_regions"]
    assert result["n_regions"] == found.n_clusters
    assert result["unit"] == ("region" if found.preset.connected else "cluster") == latest(session)["unit"]
    assert result["sweeps"] == found.chains.n_sweeps and reported["note"] is None
    program, *arguments = shlex.split(reported["command"])
    assert program == "spinseg"
    spinseg(*arguments, "--out", tmp_path, "--quiet", check=0)
    labels = np.asarray(Image.open(next(tmp_path.glob("*/labels.png"))))
    np.testing.assert_array_equal(labels, found.labels)


async def test_a_picture_that_is_read_otherwise_is_read_so_when_it_is_repeated(opened, path, tmp_path):
    file, given = tmp_path / "channels first.npy", {"channel_axis": 0, "intensity_range": (0.0, 300.0)}
    np.save(file, np.moveaxis(np.asarray(Image.open(path)), -1, 0).astype(np.uint16))
    session = opened(read_picture(file, **given), file, **given)
    await sample(session, 5, preset="paper", chains=1)
    found, reported = await repeats(session)
    assert found.summary()["intensity_range"] == [0, 300] and found.read_as.endswith("from 0 to 300")
    assert "channel_axis=0, intensity_range=(0.0, 300.0)" in reported["python"]
    assert "--channel-axis 0 --intensity-range 0.0 300.0" in reported["command"]


async def test_chains_continue_under_another_posterior_and_the_python_code_repeats_it(session, tmp_path):
    sent = {"preset": "paper", "seed": 5}
    await sample(session, 7, **sent)
    at = session.loop.chain_run.labels().copy()
    for change in ({"beta": 0.3}, {"prior": "PitmanYor"}):  # the second before a sweep is made
        assert (await apply(session, **sent, **change))["began"]
        np.testing.assert_array_equal(session.loop.chain_run.labels(), at)
    await session.loop.step()
    await session.loop.step()
    assert (await apply(session, **sent, prior="PitmanYor", count_weight=0.02))["began"]
    await run_sweeps(session, 5)
    found, reported = await repeats(session)
    assert reported["python"].count("ss.segment(") == 3 and reported["command"] is None and reported["note"]
    assert latest(session)["began"] >= 9 and latest(session)["stage"] == 4
    found.save(tmp_path, ["result.json"])
    assert [file.name for file in tmp_path.iterdir()] == ["result.json"]
    assert json.loads((tmp_path / "result.json").read_text())["python"] == found.python_code


@exhaustive
async def test_a_prior_that_forbids_the_present_partitions_restarts_the_chains(session):
    await apply(session, start="singletons")
    await session.loop.step()
    frame = await apply(session, start="singletons", prior="Potts", n_labels=2)
    assert frame["note"] == FORBIDDEN and frame["began"] == 0
    await session.loop.step()
    assert max(chain["n_clusters"] for chain in latest(session)["chains"]) <= 2
    await repeats(session)


async def test_a_restart_repeats_the_run(session):
    runs = []
    await apply(session)
    for _ in range(2):
        for _ in range(6):
            await session.loop.step()
        runs.append(latest(session))
        await session.restart()
    first, second = runs
    assert first["traces"] == second["traces"] and latest(session)["sweeps"] == 0
    assert [c["labels"] for c in first["chains"]] == [c["labels"] for c in second["chains"]]
    assert second["stage"] == first["stage"] + 1 and second["scene"] == first["scene"]


@pytest.mark.parametrize("change", [{"n_sites": 40}, {"preset": "paper"}, {"seed": 3}, {"chains": 1}, {"start": "one"}])
async def test_settings_restart_the_chains_and_prepare_the_image_again_only_where_the_sites_change(session, change):
    await apply(session)
    before = session.sites()
    await session.loop.step()
    frame, after = await apply(session, **change), session.sites()
    new_sites = not change.keys().isdisjoint({"n_sites", "preset"})
    assert (frame["stage"], frame["scene"], frame["began"], frame["sweeps"]) == (2, 1 + new_sites, 0, 0)
    assert before.shape == after.shape == session.image.shape[:2] and (before != after).any() == new_sites


async def test_transparent_pixels_are_masked_and_12_bits_are_displayed(opened, path, tmp_path):
    with Image.open(path) as picture:
        gray = np.asarray(picture.convert("L"))
    deep, inside = gray.astype(np.uint16) * 16, np.ones(gray.shape, bool)
    inside[30:70, 20:50] = False
    clear = np.dstack([deep, deep, deep, np.where(inside, 4095, 0)]).astype(np.uint16)
    tifffile.imwrite(tmp_path / "deep.tif", clear, photometric="rgb", extrasamples=["unassalpha"])
    session = opened(read_picture(tmp_path / "deep.tif"), tmp_path / "deep.tif")
    await sample(session, 3, n_sites=200, chains=1)
    found, _ = await repeats(session)
    assert np.ptp(session.image[inside]) > 200
    assert ((session.sites() == -1) == ~inside).all() and ((found.labels == 0) == ~inside).all()


def test_an_export_that_cannot_be_written_gets_one_sentence(path, monkeypatch):
    found = ss.segment(path, sweeps=2, chains=1, rng=0)
    assert handlers._file_content(found, "labels.png").startswith(b"\x89PNG")
    monkeypatch.setattr("spinseg.segmentation.files.MAX_PNG_LABELS", found.n_clusters - 1)
    with pytest.raises(Refused, match=r"^There is no labels\.png: a PNG holds .* labels\.tif has them all\.$"):
        handlers._file_content(found, "labels.png")
    assert json.loads(handlers._file_content(found, "result.json"))["left_out"]


# --- seeds ---


async def test_chains_go_on_with_seeds_and_the_python_code_repeats_it(session):
    """Two patches are joined, another is cut; then the detail is changed."""
    seeds = {"1": [[20, 20], [20, 100]], "2": [[70, 15]], "5": [[70, 70]], "6": [[80, 110]]}
    await sample(session, 6, chains=1)
    assert (await apply(session, chains=1, seeds=seeds))["note"] is None
    await run_sweeps(session, 6)
    (found, reported), frame, labels = await repeats(session), latest(session), (await segmentation(session)).labels
    assert frame["began"] >= 6 and frame["scene"] == 1 and frame["stage"] == 2
    assert labels[20, 20] == labels[20, 100]
    assert len({labels[20, 20], labels[70, 15], labels[70, 70], labels[80, 110]}) == 4
    lines = reported["python"].splitlines()
    assert len(lines) == 3 and "seeds=" not in lines[1] and "seeds={1: [(20, 20), (20, 100)], 2: [(70, 15)]" in lines[2]
    assert reported["command"] is None and "--seeds" in reported["note"]
    assert found.summary()["seeds"] == {1: [(20, 20), (20, 100)], 2: [(70, 15)], 5: [(70, 70)], 6: [(80, 110)]}
    await apply(session, chains=1, seeds=seeds, detail=0.3)
    _, reported = await repeats(session)
    *_, last = reported["python"].splitlines()
    assert reported["python"].count("\n") == 2 and "seeds=" in last and "detail=0.3" in last


async def state(session):
    """What must be as before once scribbles are removed; the Python code gives the same."""
    (found, reported), result = await repeats(session), await session.result()
    return reported, found.labels.tolist(), found.chains.labels.tolist(), result["n_regions"]


STROKES = {"1": [[20, 20], [20, 100]]}, {"1": [[20, 20], [20, 100]], "2": [[70, 15]]}


async def test_once_scribbles_are_removed_the_result_and_what_repeats_it_are_those_of_before(session):
    await sample(session, 5, chains=1)
    states = [await state(session)]
    for seeds in STROKES:
        await sample(session, 5, chains=1, seeds=seeds)
        states.append(await state(session))
    assert [reported["python"].count("seeds=") for reported, *_ in states] == [0, 1, 2]
    back = await apply(session, chains=1, seeds=STROKES[0])  # the second stroke is undone
    assert back["sweeps"] >= 5 and await state(session) == states[1]
    assert (back["stage"], back["scene"], back["note"]) == (4, 1, BACK)
    await sample(session, 5, chains=1, seeds=STROKES[1])
    assert (await state(session))[0]["python"].count("seeds=") == 2
    await apply(session, chains=1)  # all are removed
    assert await state(session) == states[0]
    await run_sweeps(session, latest(session)["sweeps"] + 2)  # the chains go on from there
    assert (await repeats(session))[1]["command"] is not None


async def test_scribbles_that_cut_a_superpixel_are_undone_too(session):
    await sample(session, 5, chains=1)
    before, sites = await state(session), session.sites()
    rows, columns = np.nonzero(sites == sites[30, 30])
    first, second = ([int(rows[i]), int(columns[i])] for i in (0, -1))
    await sample(session, 3, chains=1, seeds={"1": [first]})
    await sample(session, 3, chains=1, seeds={"1": [first], "2": [second]})
    assert (session.sites() != sites).any()
    back = await apply(session, chains=1)
    assert back["sweeps"] >= 5 and await state(session) == before
    assert (back["scene"], back["note"]) == (3, BACK)
    np.testing.assert_array_equal(session.sites(), sites)


@pytest.mark.parametrize("forgotten", ["after another change", "of many strokes"])
async def test_chains_restart_without_removed_scribbles_where_those_of_before_are_forgotten(
    session, forgotten, monkeypatch
):
    changed = {"count_weight": 0.01} if forgotten == "after another change" else {}
    if not changed:
        monkeypatch.setattr("spinseg.app.session.MAX_UNDONE", 1)
    await sample(session, 3, chains=1)
    for seeds in STROKES:
        await sample(session, 3, chains=1, seeds=seeds)
    if changed:
        await sample(session, 3, chains=1, seeds=STROKES[1], **changed)
    frame = await apply(session, chains=1, **changed)
    assert (frame["began"], frame["sweeps"]) == (0, 0) and frame["note"] == REMOVED
    await run_sweeps(session, 3)
    assert "seeds=" not in (await repeats(session))[1]["python"]


async def test_seeds_in_one_site_cut_it_and_restart_the_chains(session):
    await sample(session, 3, chains=1)
    site = session.sites()
    rows, columns = np.nonzero(site == site[30, 30])
    first, second = ([int(rows[i]), int(columns[i])] for i in (0, -1))
    applied = await apply(session, chains=1, seeds={"1": [first], "2": [second]})
    await run_sweeps(session, 3)
    found, _ = await repeats(session)
    assert (applied["began"], applied["note"], applied["scene"]) == (0, CUT, 2)
    assert found.labels[tuple(first)] != found.labels[tuple(second)]
    said, report = [], session.loop.report
    session.loop.report = lambda words: (said.append(words), report(words))
    applied = await apply(session, chains=1, seeds={"1": [first]})  # the other stroke is undone
    assert (applied["began"], applied["note"], applied["scene"]) == (0, WHOLE, 3)
    assert said == ["Starting the chains.", None]  # nothing is prepared again
    np.testing.assert_array_equal(session.sites(), site)
    await run_sweeps(session, 3)
    await repeats(session)


async def test_scribbles_are_answered_from_the_draws_so_far_before_the_chains_go_on(session):
    await sample(session, 12, preset="photo", chains=2)
    before, run = await session.result(), session.loop.chain_run
    sites, (one, other) = session.sites(), ((20, 20), (20, 100))  # in two patches
    found = await session.conditioned({1: [one, other], 2: [(70, 15)]})
    labels = np.frombuffer(b64decode(found["labels"]), "<u2")
    assert labels[sites[one]] == labels[sites[other]] != labels[sites[70, 15]]
    assert found["n_regions"] < before["n_regions"] and found["detail"] == before["detail"]
    away = sites[60:, 60:].ravel()  # a patch without a stroke stays as it was
    old = np.frombuffer(b64decode(before["labels"]), "<u2")
    np.testing.assert_array_equal(labels[away][:, None] == labels[away], old[away][:, None] == old[away])
    assert session.loop.chain_run is run and run.problem.model.seeds is None
    rows, columns = np.nonzero(sites == sites[30, 30])
    apart = [[(int(rows[i]), int(columns[i]))] for i in (0, -1)]
    with pytest.raises(NotYet):  # the superpixel must be cut
        await session.conditioned({1: apart[0], 2: apart[1]})
    with pytest.raises(ss.InvalidInput):
        await session.conditioned({1: [one], 2: [one]})


NO_SEEDS = [[1], "x", {"1": []}, {"1": [[1]]}, {"1": [[0.5, 1]]}, {"a": [[1, 1]]}, {"1": [[True, 1]]}]


@pytest.mark.parametrize("seeds", NO_SEEDS, ids=str)
def test_seeds_that_are_none_are_refused(seeds):
    assert UserSettings.from_json({"seeds": []}).seeds == {}
    with pytest.raises(ss.InvalidInput, match="seeds must be the pixels of each seed"):
        UserSettings.from_json({"seeds": seeds})


async def test_seeds_that_contradict_each_other_change_nothing(session):
    await sample(session, 2, chains=1)
    run = session.loop.chain_run
    for wrong in (
        {"chains": 1, "seeds": {"1": [[1, 1]], "2": [[1, 1]]}},
        {"chains": 1, "seeds": {"1": [[1, 999]]}},
        {"preset": "paper", "seeds": {"1": [[1, 1]]}},  # whose clusters need not be connected
    ):
        with pytest.raises(ss.InvalidInput, match="seeds must"):
            await apply(session, **wrong)
    assert session.loop.chain_run is run


# --- results ---


@pytest.mark.parametrize("preset", ["photo", "classes"])
async def test_maps_are_made_from_the_draws_so_far_with_refined_outlines(session, preset):
    await sample(session, 20, preset=preset)
    await until_outlined(session)
    found, boundaries, together = await segmentation(session), await session.boundaries(), await session.together(3)
    np.testing.assert_array_equal(session.outlines(), found.sites)
    np.testing.assert_allclose(boundaries / 255, found.boundary_probability, atol=0.003)
    np.testing.assert_allclose(together / 255, co_clustering(found.chains.labels, 3), atol=0.003)
    starts = [chain["start"] for chain in latest(session)["chains"]]
    assert starts == {"photo": ["dispersed"] * 2, "classes": ["one", "singletons"]}[preset]
    if preset == "photo":  # so few sweeps may leave all in one class, without an outline to refine
        assert (session.outlines() != session.sites()).any()
        assert separation_probability(found.chains.labels, found.model.graph.edges).max() > 0.9


async def test_the_page_has_the_outlines_of_the_exports_whenever_the_chains_rest(session):
    await apply(session, preset="photo")
    before = session.sites()
    np.testing.assert_array_equal(session.outlines(), before)
    for _ in range(2):
        await run_sweeps(session, latest(session)["sweeps"] + 4)
        await until_outlined(session)
        np.testing.assert_array_equal(session.outlines(), (await segmentation(session)).sites)
    np.testing.assert_array_equal(session.sites(), before)
    refined = session.outlines()
    assert (before != refined).any()
    await session.restart()  # the sites are the same
    assert latest(session)["outlined"] == 0
    np.testing.assert_array_equal(session.outlines(), refined)
    await apply(session, preset="photo", n_sites=40)
    np.testing.assert_array_equal(session.outlines(), session.sites())


async def test_classes_have_a_result_while_the_chains_run_once_their_draws_have_few_clusters(session, monkeypatch):
    monkeypatch.setattr("spinseg.app.chain_run.MAX_ESTIMATED_CLUSTERS", 0)
    await apply(session, preset="classes", chains=1, start="singletons")
    session.loop.start(1.0)  # which leaves the chain at rest most of the time
    await until(lambda: latest(session)["sweeps"])
    with pytest.raises(NotYet):
        await session.result()
    assert latest(session)["outlined"] == 0
    await session.loop.pause()
    await until_outlined(session)
    assert (await session.result())["n_regions"] >= 1


@exhaustive
async def test_outlines_are_refined_now_and_then_while_the_chains_run(session, monkeypatch):
    monkeypatch.setattr("spinseg.app.run_loop.IDLE_RATIO", 1)
    await apply(session, chains=1)
    session.loop.start(None)
    for _ in range(2):
        last = latest(session)["outlined"]
        await until(lambda: latest(session)["outlined"] > last)  # noqa: B023
    assert session.loop.running


async def test_the_outlines_of_a_reduced_picture_are_refined_at_the_size_of_the_page(path, opened, monkeypatch):
    """They lie where the export has them, within a pixel of the page, and those at seeds stay where they were."""
    monkeypatch.setattr("spinseg.app.session.MAX_DISPLAYED_PIXELS", 90 * 120)
    monkeypatch.setattr(ss.Photo, "max_pixels", 90 * 120)
    with Image.open(path) as small:
        large = np.asarray(small.resize((359, 269))) + np.random.default_rng(1).normal(0, 80, (269, 359, 3))
    session = opened(as_picture(large.clip(0, 255).astype(np.uint8)), "large.png")
    await sample(session, 6, preset="photo", chains=1)
    await until_outlined(session)
    found, outlines, before = await segmentation(session), session.outlines(), session.sites()
    _, first = np.unique(np.where(outlines != before, before, -1), return_index=True)
    moved = np.stack(np.unravel_index(first[1:], before.shape), axis=1).tolist()
    seeds = {str(i): [[3 * row + 1, 3 * column + 1]] for i, (row, column) in enumerate(moved, 1)}
    await sample(session, 6, preset="photo", chains=1, seeds=seeds)
    await until_outlined(session)
    assert outlines.shape == session.image.shape[:2] == (90, 120) and len(moved) > 2
    assert set(np.unique(outlines)) == set(np.unique(before))
    exported = found.labels[1::3, 1::3] - 1
    labels = found.partition[outlines][: exported.shape[0], : exported.shape[1]]
    assert (labels != exported).mean() < 0.03
    again = session.outlines()
    assert (again != before).any() and all(again[row, column] == before[row, column] for row, column in moved)


async def test_results_at_other_details_are_those_of_the_segmentation(opened):
    image = np.asarray(Image.open(PICTURES["coffee"].path).resize((180, 120)))  # whose details differ
    session = opened(as_picture(image), "small.png")
    await sample(session, 12, detail=0.2)
    results = {detail: await session.result(detail) for detail in (None, 0.2, 0.9)}
    found, answers = await segmentation(session), await session.answers()
    assert results[None] == results[0.2] and results[0.2]["detail"] == 0.2
    assert results[0.2]["n_regions"] < results[0.9]["n_regions"]
    for detail in (0.2, 0.9):
        labels = np.frombuffer(b64decode(results[detail]["labels"]), "<u2")
        partition = found.at(detail).partition
        np.testing.assert_array_equal(labels[:, None] == labels, partition[:, None] == partition)
        assert results[detail]["n_regions"] == found.at(detail).n_clusters
    components = [found.chains.component[draw] for _, draw in spread_draws(found.chains)]
    drawn = [f"Detail {(component + 0.5) / found.chains.n_components:.2f}: " for component in components]
    assert [each["words"][: len(words)] for each, words in zip(answers, drawn, strict=True)] == drawn
    await apply(session, preset="paper")
    await session.loop.step()
    with pytest.raises(NotYet):
        await session.result(0.5)
    few = await session.answers()
    assert (await session.result())["detail"] is None
    for each, place in zip(answers, spread_draws(found.chains), strict=True):
        labels, drawn = np.frombuffer(b64decode(each["labels"]), "<u2"), found.chains.labels[place]
        np.testing.assert_array_equal(labels[:, None] == labels, drawn[:, None] == drawn)
        assert each["n_regions"] == drawn.max() + 1
    assert 1 <= len(few) <= len(answers) == 10 and all("cluster" in each["words"] for each in few)


@pytest.mark.parametrize(
    ("scale", "sent", "says"),
    [
        (1 / 255 / 60, {"start": "one"}, "Try the black and white levels 0"),  # as dark as if its numbers ran to 60
        (1 / 255, {"start": "greedy"}, None),
        (1 / 255, {"min_size": 2}, "The chains cannot reach every partition"),
    ],
)
async def test_one_region_of_contrast_and_unreachable_partitions_come_with_a_warning(opened, path, scale, sent, says):
    session = opened(as_picture(np.asarray(Image.open(path)) * scale), path)
    await sample(session, 4, preset="paper", chains=1, **sent)
    warning = (await session.result())["warning"]
    assert warning is None if says is None else says in warning


# --- frames and diagnoses ---


async def test_frames_contain_each_value_of_the_traces_once(session):
    await apply(session, chains=2)
    frames = [session.loop.frame(-1, 0)]
    for n_steps in (2, 1):
        for _ in range(n_steps):
            await session.loop.step()
        frames.append(session.loop.frame(frames[-1]["stage"], frames[-1]["sweeps"]))
    chains = (await segmentation(session)).chains
    assert [frame["traces"]["from"] for frame in frames] == [0, 0, 2]
    for name, whole in chains._traces.items():
        sent = np.concatenate([frame["traces"][name] for frame in frames], axis=1)
        shown = whole[:, chains.n_components // 2 :: chains.n_components]
        np.testing.assert_allclose(sent, shown, atol=0.005)


@pytest.mark.parametrize("by_steps", effort([True], [False, True]))
async def test_two_paused_chains_have_the_diagnostics_of_the_python_code(session, by_steps):
    await apply(session, preset="photo", chains=2)
    if by_steps:
        for _ in range(44):
            await session.loop.step()
    else:
        await run_sweeps(session, 90)
    found = (await segmentation(session)).diagnostics
    wanted = {name: round(row.r_hat, 6) for name, row in found.table.items()}

    def r_hats():
        reported = latest(session)["agreement"]
        return reported and {name: round(float(value), 6) for name, value in reported["r_hat"].items()}

    await until(lambda: r_hats() == wanted)
    reported = latest(session)["agreement"]
    assert reported["converged"] == found.converged
    assert reported["shortfalls"] == shortfalls(found) and bool(shortfalls(found)) == (not found.converged)
    problem = session.loop.chain_run.problem
    taken_for = problem.provenance["taken_for"]
    said = verdict_sentences(found, problem.preset, latest(session)["sweeps"], taken_for=taken_for)
    assert reported["verdict"] == in_user_words(said) and ("Taken for" in said) is (taken_for is not None)
    assert "converged" in reported["headline"]
    assert reported["ess"] == pytest.approx(found.ess)


async def test_of_chains_of_clusters_it_is_said_whether_they_agree_unless_there_is_one(session):
    await sample(session, 44, preset="paper", chains=2)
    await until(lambda: latest(session)["agreement"] is not None)
    reported = latest(session)["agreement"]
    assert "clusters" in reported["headline"] and reported["headline"] in reported["verdict"]
    assert "human annotations for the preset paper" in reported["verdict"]
    assert not (await segmentation(session)).calibrated
    await sample(session, 60, preset="paper", chains=1)
    assert latest(session)["agreement"] is None


async def test_what_is_said_of_convergence_stays_until_it_is_known_at_another_detail(session):
    await sample(session, 44, preset="photo", chains=2)
    await until(lambda: latest(session)["agreement"] is not None)
    assert (await apply(session, preset="photo", chains=2, detail=0.2))["agreement"] is not None
    assert session.loop.chain_run.problem.preset.detail == 0.2


async def test_frames_can_be_made_at_any_time(session):
    for sent in ({}, {"prior": "DirichletProcess"}, {"n_sites": 50}):
        changing = asyncio.create_task(apply(session, **sent))
        while not changing.done():
            frame = latest(session)
            assert len(frame["chains"]) == (2 if frame["stage"] else 0)
            await asyncio.sleep(0.001)


async def test_what_is_prepared_is_said_while_it_is(session):
    said, report = [], session.loop.report
    session.loop.report = lambda words: (said.append(words), report(words))
    await apply(session, preset="photo", chains=1)
    stages = ["Recognizing the kind of image.", "Finding boundary evidence.", "Finding superpixels."]
    assert said == [*stages, "Comparing superpixels.", "Starting the chains.", None]
    said.clear()
    await apply(session, preset="photo", chains=1, seeds={"1": [[5, 5]]})
    assert said == ["Starting the chains.", None] and latest(session)["doing"] is None


# --- running and pausing ---


async def test_chains_stop_once_more_sweeps_are_of_no_use_and_go_on_if_asked(opened):
    halves = np.zeros((40, 50))
    halves[:, 25:] = 0.8
    session = opened(as_picture(halves), "halves.png")
    await apply(session, preset="photo", chains=2)
    session.loop.start(100.0)
    await until(lambda: session.loop.state != "running")
    frame = latest(session)
    drawn = (await segmentation(session)).diagnostics
    assert session.loop.state == "paused" and frame["agreement"]["enough"] and is_enough(drawn)
    assert frame["sweeps"] >= 80 and drawn.converged == frame["agreement"]["converged"]  # no sooner than `segment`
    assert frame["outlined"] == frame["sweeps"]  # nothing changes once it is said
    session.loop.start(100.0)
    for _ in range(2):  # diagnoses, of which one may have begun before
        last = latest(session)["agreement"]
        await until(lambda: latest(session)["agreement"] is not last or not session.loop.running)  # noqa: B023
    assert session.loop.state == "running"


def at_random_times(monkeypatch, rng):
    """Let chains, diagnoses and outlines take random times."""

    def delayed(work, most):
        def wait(*arguments):
            time.sleep(most * rng.random() ** 3)
            return work(*arguments)

        return wait

    monkeypatch.setattr(Sampler, "advance", delayed(Sampler.advance, 0.1))
    for name in ("agreement", "refined_sites"):
        monkeypatch.setattr(ChainRun, name, delayed(getattr(ChainRun, name), 0.5))
    monkeypatch.setattr("spinseg.app.run_loop.ROUND_SECONDS", 0.2 * rng.random())


async def test_the_same_seed_gives_the_same_answer_however_long_anything_takes(opened, path, monkeypatch):
    """The chains stop after the same sweeps, also where the user looks, pauses and goes on meanwhile."""
    answers, rng = [], np.random.default_rng()
    for turn in range(3):
        with monkeypatch.context() as patched:
            if turn:
                at_random_times(patched, rng)
            session = opened(read_picture(path), path)
            await apply(session, preset="photo")
            session.loop.start(None)
            while session.loop.state == "running":
                await asyncio.sleep(0.3 * rng.random())
                if turn == 2 and session.loop.state == "running":
                    await session.loop.pause()
                    stopped = latest(session)["agreement"]
                    if not (stopped and stopped["enough"]):
                        session.loop.start(None if rng.random() < 0.7 else 100.0)
            frame = latest(session)
            found, reported = await repeats(session)
            result = await session.result()
            assert frame["agreement"] and result["sweeps"] == frame["sweeps"]
            assert result["n_regions"] == found.n_clusters
        answers.append((frame["sweeps"], found.chains.labels.tolist(), found.labels.tolist(), reported))
    assert answers[0] == answers[1] == answers[2]


async def test_chains_that_were_finished_before_scribbles_rest_once_these_are_removed(session):
    await apply(session, preset="photo")
    session.loop.start(None)
    await until(lambda: session.loop.state != "running")
    before = latest(session)
    await apply(session, preset="photo", seeds=STROKES[0])
    session.loop.start(1.0)
    await until(lambda: latest(session)["sweeps"])
    after = await apply(session, preset="photo")
    assert (after["state"], after["sweeps"]) == (before["state"], before["sweeps"])
    assert after["agreement"] == before["agreement"] is not None


async def test_the_chains_rest_during_an_export_and_go_on_after_it(session):
    await apply(session, chains=1)
    session.loop.start(None)
    await until(lambda: latest(session)["sweeps"] > 3)
    seen = []

    def write(found):
        seen.extend([latest(session)["sweeps"], time.sleep(0.3), latest(session)["sweeps"], found.chains.n_sweeps])
        return b"file"

    assert await session.export(write) == b"file"
    assert seen[0] == seen[2] == seen[3] and session.loop.running
    await until(lambda: latest(session)["sweeps"] > seen[0])


async def test_pausing_and_starting_in_quick_succession_leaves_the_chains_running(session):
    await apply(session, chains=1)
    for turn in range(60):
        session.loop.start(None)
        await asyncio.sleep(0.001 * (turn % 7))
        await session.loop.pause()
    at = latest(session)["sweeps"]
    session.loop.start(None)
    await until(lambda: latest(session)["sweeps"] > at)
    assert session.loop.state in ("running", "done")


async def test_the_speed_is_not_exceeded_and_a_lower_one_takes_effect_at_once(session):
    await apply(session, chains=1)
    began = time.monotonic()
    session.loop.start(10.0)
    await until(lambda: latest(session)["sweeps"] >= 8)
    assert latest(session)["sweeps"] <= 10 * (time.monotonic() - began) + 1
    session.loop.start(None)
    await until(lambda: latest(session)["sweeps"] > 20)
    session.loop.start(5.0)
    async with session.loop.lock:  # after the round in progress
        at, began = latest(session)["sweeps"], time.monotonic()
    await until(lambda: latest(session)["sweeps"] >= at + 4)
    await session.loop.pause()
    assert latest(session)["sweeps"] - at <= 5 * (time.monotonic() - began) + 2


async def test_there_are_no_results_before_the_first_sweep(session):
    for wanted in (session.restart, session.loop.step):
        with pytest.raises(NotYet):
            await wanted()
    await apply(session)
    for wanted in (session.result, session.boundaries, session.repeat, session.answers):
        with pytest.raises(NotYet):
            await wanted()
    with pytest.raises(NotYet):
        await session.export(lambda found: b"")
    with pytest.raises(NotYet):
        await session.conditioned({1: [[5, 5]]})


async def test_the_run_ends_at_the_maximum_number_of_sweeps(session, monkeypatch):
    monkeypatch.setattr("spinseg.app.chain_run.MAX_SWEEPS", 12)
    await sample(session, 99)
    assert (session.loop.state, latest(session)["sweeps"]) == ("done", 12)


# --- words, controls and colors ---


async def test_what_is_refused_is_said_in_the_words_of_the_web_app(session):
    along, across = [[10, column] for column in range(0, 120, 2)], [[row, 60] for row in range(0, 90, 2) if row != 10]
    cases = {
        r"The (yellow|blue) strokes cannot be joined without crossing another color\.": {"1": along, "2": across},
        r"A place cannot have two colors: keep strokes apart\.": {"1": [[5, 5]], "3": [[5, 5]]},
    }
    await apply(session, preset="photo", chains=1)
    for sentence, seeds in cases.items():
        with pytest.raises(ss.InvalidInput) as refused:
            await apply(session, preset="photo", chains=1, seeds=seeds)
        assert re.fullmatch(sentence, refusal(refused.value)), refused.value
    with pytest.raises(ss.InvalidInput) as refused:
        await apply(session, preset="paper", seeds={"1": [[5, 5]]})
    assert refusal(refused.value).startswith("Scribbles need connected regions: choose one of the presets")
    with pytest.raises(ss.InvalidInput) as refused:
        await apply(session, preset="paper", min_size=30, max_size=20)
    assert "at least as many superpixels as the smallest, 30" in refusal(refused.value)
    with pytest.raises(ss.InvalidInput) as refused:
        seed_image({1: [(0, 0)]}, (4, 4), np.zeros((4, 4), bool))
    assert refusal(refused.value) == "A stroke must lie inside the visible part of the image."
    with pytest.raises(ss.InvalidInput) as refused:
        reduced_seeds(np.array([[1, 2], [3, 4]]), 2)
    assert re.match(r"The \w+ strokes must lie at least 2 pixels from", refusal(refused.value))
    close = np.zeros((40, 40))
    close[5:20, 5:20] = 1
    warned = ss.segment(close, "photo", detail=0.0, rng=0, sweeps=4).warning
    dark = one_region_warning(Contrast(0.05, 0, (0.25, 0.375)), None, ss.Photo())
    doubts = [Reading().laid_out(shape).otherwise for shape in ((5, 90, 60), (90, 90, 5))]
    otherwise = (OTHERWISE_COLOR, OTHERWISE_OPACITY, OTHERWISE_NO_OPACITY)
    for advice in (warned, dark, *doubts, ss.Photo(detail=1.0).finer, ss.Paper().finer, *otherwise):
        assert re.search(r"\w+=", advice) and not re.search(r"\w+=|\w_\w", in_user_words(advice)), advice


def test_matched_clusters_keep_their_numbers():
    rng = np.random.default_rng(1)
    before = rng.integers(0, 6, 300).astype(np.int32)
    after = before.copy()
    after[:20] = 9
    labels = np.unique(rng.permutation(10)[after], return_inverse=True)[1].astype(np.int32)
    kept = match_labels(labels, before)
    assert (kept[20:] == before[20:]).all() and set(kept[:20]) == {6}
    alone = match_labels(np.arange(5, dtype=np.int32), np.zeros(5, np.int32))
    assert sorted(alone) == [0, 1, 2, 3, 4]
    assert (match_labels(np.zeros(5, np.int32), np.array([3, 3, 1, 3, 2], np.int32)) == 3).all()
    first, own = np.array([7, 7, 7, 2, 2, 2]), np.array([0, 0, 1, 1, 7, 5])  # of the first chain, and of another one
    assert match_labels(np.array([0, 0, 0, 1, 1, 1]), first, own).tolist() == [7, 7, 7, 2, 2, 2]
    assert match_labels(np.array([0, 0, 0, 1, 1, 2]), first, own).tolist() == [7, 7, 7, 2, 2, 5]


def with_effect(control):
    """A preset and a prior with which a control has an effect."""
    prior = next(name for name in PRIOR_CHOICES if control.group != "prior" or control.applies("photo", name))
    return {"preset": (control.presets or ("photo",))[0], "prior": prior}


@pytest.mark.parametrize("control", controls().values(), ids=lambda control: control.name)
def test_controls_are_checked_against_their_ranges(control):
    sent = with_effect(control)
    for value in (control.least, control.most):
        assert UserSettings.from_json({**sent, control.name: value}).numbers == {control.name: value}
    for value in (control.least - 1, control.most + 1, "1", True, [1], float("nan"), float("inf"), 10**400):
        with pytest.raises(ss.InvalidInput, match=f"^{control.label} must be a .* from {control.least:g} to"):
            UserSettings.from_json({**sent, control.name: value})


@pytest.mark.parametrize("preset", Preset.known)
def test_every_option_with_a_slider_has_a_control_that_applies_to_presets_that_have_it(preset):
    kind = Preset.known[preset]
    sliders = {name: about for name, about in kind.options().items() if about.slider}
    applying = {name for name, c in controls().items() if c.presets is not None and c.applies(preset, "preset")}
    assert applying == sliders.keys()
    for name, about in sliders.items():
        control = controls()[name]
        having = [(other, each.options()[name]) for other, each in Preset.known.items() if name in each.options()]
        assert (control.whole, control.presets) == (about.kind is int, tuple(other for other, _ in having))
        assert control.about == having[0][1].help
        assert (control.least, control.most, control.scale, control.step) == tuple(about.slider)
        chosen = UserSettings.from_json({"preset": preset, name: control.most}).chosen(10_000)
        assert isinstance(chosen, kind) and chosen.changes()[name] == control.most
    others = {name: control.most for name, control in controls().items() if control.presets and name not in sliders}
    assert UserSettings.from_json({"preset": preset, **others}) == UserSettings(preset)  # dropped


@pytest.mark.parametrize("prior", PRIOR_CHOICES)
def test_priors_have_the_parameters_that_are_set_and_no_others(prior):
    sent = {control.name: control.most for control in controls().values() if control.group == "prior"}
    chosen = UserSettings.from_json({"prior": prior, **sent, "max_size": None})
    usual = PRIOR_CHOICES[prior][2]
    assert chosen.numbers.keys() == {*usual, "min_size"}
    made = chosen.chosen(10_000).prior
    assert {name: getattr(made, name) for name in chosen.numbers} == chosen.numbers
    assert type(made).__name__ == (prior if prior != "preset" else type(ss.Photo().prior).__name__)
    made = UserSettings(prior=prior).chosen(10_000).prior
    assert {name: getattr(made, name) for name in usual} == usual


@pytest.mark.parametrize(
    "sent", [{"prior": "crp"}, {"preset": None}, {"start": 1}, {"gamma": 1}, {"detail": {}}], ids=str
)
def test_choices_that_there_are_not_are_refused(sent):
    with pytest.raises(ss.InvalidInput):
        UserSettings.from_json(sent)


def test_chains_start_where_the_preset_says_unless_that_is_one_place_for_all():
    assert "init" not in UserSettings().options(10**6) and "init" not in UserSettings("classes").options(10**6)
    for n_chains, starts in ((1, "greedy"), (3, DIFFERENT_STARTS[:3])):
        assert UserSettings("paper", numbers={"chains": n_chains}).options(10**6)["init"] == starts
    assert UserSettings("paper", start="singletons").options(10**6)["init"] == "singletons"
    assert UserSettings("paper").options(10**7)["n_sites"] == 20_000 and "n_sites" not in UserSettings().options(10**7)


def test_the_description_has_every_control():
    description = page_description()
    assert [control["name"] for control in description["controls"]] == list(controls())
    assert {start["name"] for start in description["starts"]} == {"different", *STARTS}
    for preset, (name, kind) in zip(description["presets"], Preset.known.items(), strict=True):
        assert (preset["name"], preset["about"], preset["connected"]) == (name, kind.about, kind.connected)
        assert all(getattr(kind(), option) == value for option, value in preset["values"].items())
    for prior in description["priors"]:
        assert set(prior["defaults"]) <= set(prior["parameters"]) <= controls().keys() and prior["about"]
