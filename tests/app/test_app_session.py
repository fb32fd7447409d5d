"""Sessions without a browser: exports equal what the Python code and the command give, also after a change of settings."""

import asyncio
import io
import json
import shlex
import time
from base64 import b64decode
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import tifffile
from PIL import Image

from effort import effort, exhaustive

pytest.importorskip("starlette", reason="the extra [web] is not installed")

from spinseg.app.user_settings import UserSettings

import spinseg as ss
from processes import PATIENCE
from spinseg.app import handlers
from spinseg.app.controls import CONTROLS, page_description, prior_parameters
from spinseg.app.guard import Refused
from spinseg.app.rendering import match_labels
from spinseg.app.run_loop import NotYet
from spinseg.app.session import CUT, FORBIDDEN, Session, Threads
from spinseg.cli.program import app as command_line
from spinseg.image.io import read_picture
from spinseg.image.picture import as_picture
from spinseg.partition.pairs import co_clustering, separation_probability
from spinseg.pictures import PICTURES
from spinseg.sampler.starts import STARTS
from spinseg.segmentation.draws import spread_draws
from spinseg.segmentation.presets import PRESETS
from spinseg.segmentation.verdict import verdict_sentences


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A small picture of four patches with noise."""
    rng = np.random.default_rng(0)
    image = np.zeros((90, 120, 3))
    image[:45, :60], image[:45, 60:], image[45:, :40], image[45:, 40:] = (
        (200, 60, 50),
        (60, 160, 60),
        (60, 70, 190),
        (190, 180, 80),
    )
    file = tmp_path_factory.mktemp("page") / "it's a picture.png"
    Image.fromarray((image + rng.normal(0, 25, image.shape)).clip(0, 255).astype(np.uint8)).save(file)
    return file


@pytest.fixture
def session(path):
    with ThreadPoolExecutor(4) as chains, ThreadPoolExecutor(2) as others:
        made = Session(read_picture(path), str(path), Threads(chains, others))
        yield made
        made.close()


def repeated(python):
    """The result of the Python code."""
    names = {}
    exec(python, names)
    return names["found"]


def same(found, again):
    np.testing.assert_array_equal(found.labels, again.labels)
    np.testing.assert_array_equal(found.boundary_probability, again.boundary_probability)
    np.testing.assert_array_equal(found.chains.labels, again.chains.labels)
    assert found.chains.best_log_posterior == again.chains.best_log_posterior


async def until(true):
    """Wait for a condition."""
    async with asyncio.timeout(PATIENCE):
        while not true():
            await asyncio.sleep(0.01)


async def run_sweeps(session, sweeps):
    """Run until there are at least so many sweeps, and pause."""
    session.loop.start(None)
    while session.frame(0, 0)["sweeps"] < sweeps and session.loop.state == "running":
        await asyncio.sleep(0.01)
    await session.loop.pause()


@pytest.fixture
def opened():
    """Open sessions of pictures; they are closed at the end."""
    with ThreadPoolExecutor(4) as chains, ThreadPoolExecutor(2) as others:
        made = []

        def open_session(picture, source, **given):
            made.append(Session(picture, source, Threads(chains, others), given))
            return made[-1]

        yield open_session
        for session in made:
            session.close()


def test_a_picture_that_is_read_otherwise_is_read_so_when_it_is_repeated(opened, path, tmp_path):
    file = tmp_path / "channels first.npy"
    np.save(file, np.moveaxis(np.asarray(Image.open(path)), -1, 0).astype(np.uint16))
    given = {"channel_axis": 0, "intensity_range": (0.0, 300.0)}
    session = opened(read_picture(file, **given), str(file), **given)

    async def used():
        await session.apply(UserSettings.from_json({"preset": "paper", "chains": 1}))
        await run_sweeps(session, 5)
        return await session.segmentation(), await session.repeat()

    found, told = asyncio.run(used())
    assert found.summary()["intensity_range"] == [0, 300] and found.read_as.endswith("from 0 to 300")
    same(found, repeated(told["python"]))
    assert "channel_axis=0, intensity_range=(0.0, 300.0)" in told["python"]
    words = shlex.split(told["command"])
    assert words[words.index("--channel-axis") + 1] == "0"
    assert words[words.index("--intensity-range") + 1 :][:2] == ["0.0", "300.0"]


def test_one_region_for_a_picture_of_contrast_comes_with_a_warning(opened, path):
    dim = as_picture(np.asarray(Image.open(path)) / 255 / 60)  # as dark as if its numbers ran to 60

    async def warning(picture):
        session = opened(picture, str(path))
        await session.apply(UserSettings.from_json({"preset": "paper", "chains": 1, "start": "one"}))
        await run_sweeps(session, 4)
        return (await session.result())["warning"]

    assert "Try intensity_range=(0" in asyncio.run(warning(dim))
    assert asyncio.run(warning(read_picture(path))) is None


def test_limits_that_the_sampler_cannot_cope_with_come_with_a_warning(opened, path):
    async def warning(**limits):
        session = opened(read_picture(path), str(path))
        await session.apply(UserSettings.from_json({"preset": "paper", "chains": 1, **limits}))
        await run_sweeps(session, 2)
        return (await session.result())["warning"]

    assert asyncio.run(warning(min_size=2)).startswith("The chains cannot reach every partition")
    assert asyncio.run(warning()) is None


EXPORTED = [
    {},
    {"start": "one", "chains": 1, "seed": 3},
    {"preset": "paper", "prior": "py", "alpha": 2, "discount": 0.3, "chains": 3, "n_sites": 60},
    {"prior": "potts", "start": "singletons", "min_size": 2, "detail": 0.8},
    {"prior": "mfm", "labels": 4, "beta": 0.5, "lam": 3, "count_weight": 0.01, "max_size": 300},
    {"preset": "classes", "prior": "finite", "labels": 5, "chains": 3, "beta": 0.1, "lam": 2, "n_sites": 150},
    {"preset": "classes", "seed": 2, "min_size": 3},
]


@pytest.mark.parametrize("sent", EXPORTED[:: effort(3, 1)], ids=str)
def test_exports_equal_what_the_python_code_and_the_command_give(session, sent, tmp_path):
    async def used():
        await session.apply(UserSettings.from_json(sent))
        await run_sweeps(session, 11)
        return await session.segmentation(), await session.repeat(), await session.result()

    found, told, result = asyncio.run(used())
    same(found, repeated(told["python"]))
    shown = np.frombuffer(b64decode(result["labels"]), "<u2")
    assert (
        len(set(zip(shown, found.partition, strict=True))) == len(set(shown)) == result["n_regions"] == found.n_clusters
    )
    assert result["cut"] == found.settings.regions
    assert result["sweeps"] == found.chains.n_sweeps and told["note"] is None
    program, *arguments = shlex.split(told["command"])
    assert program == "spinseg"
    command_line([*arguments, "--out", str(tmp_path), "--quiet"], standalone_mode=False)
    labels = np.asarray(Image.open(next(tmp_path.glob("*/labels.png"))))
    np.testing.assert_array_equal(labels, found.labels)


def test_chains_continue_under_another_posterior_and_the_python_code_repeats_it(session, tmp_path):
    async def used():
        await session.apply(UserSettings.from_json({"preset": "paper", "seed": 5}))
        await run_sweeps(session, 7)
        at = session.loop.chain_run.labels().copy()
        one = await session.apply(UserSettings.from_json({"preset": "paper", "seed": 5, "beta": 0.3}))
        np.testing.assert_array_equal(session.loop.chain_run.labels(), at)
        two = await session.apply(
            UserSettings.from_json({"preset": "paper", "seed": 5, "prior": "py"})
        )  # before a sweep is made
        np.testing.assert_array_equal(session.loop.chain_run.labels(), at)
        await session.loop.step()
        await session.loop.step()
        three = await session.apply(
            UserSettings.from_json({"preset": "paper", "seed": 5, "prior": "py", "count_weight": 0.02})
        )
        await run_sweeps(session, 5)
        assert [one, two, three] == [{"restarted": False, "note": None}] * 3
        return await session.segmentation(), await session.repeat(), session.frame(0, 0)

    found, told, frame = asyncio.run(used())
    assert told["python"].count("ss.segment(") == 3 and told["command"] is None and told["note"]
    same(found, repeated(told["python"]))
    assert frame["began"] >= 9 and frame["stage"] == 4
    assert told["python"] == f"import spinseg as ss\n{found.python_code}"
    found.save(tmp_path, ["result.json"])
    assert [file.name for file in tmp_path.iterdir()] == ["result.json"]
    assert json.loads((tmp_path / "result.json").read_text())["python"] == found.python_code


def test_chains_go_on_with_seeds_and_the_python_code_repeats_it(session):
    """Two patches are joined, another is cut; then the seeds are taken back."""
    seeds = {"1": [[20, 20], [20, 100]], "2": [[70, 15]], "5": [[70, 70]], "6": [[80, 110]]}

    async def used():
        await session.apply(UserSettings.from_json({"chains": 1}))
        await run_sweeps(session, 6)
        applied = await session.apply(UserSettings.from_json({"chains": 1, "seeds": seeds}))
        await run_sweeps(session, 6)
        found, told, frame = await session.segmentation(), await session.repeat(), session.frame(0, 0)
        await session.apply(UserSettings.from_json({"chains": 1}))
        await run_sweeps(session, 3)
        return applied, found, told, frame, await session.repeat()

    applied, found, told, frame, later = asyncio.run(used())
    assert applied == {"restarted": False, "note": None}
    assert frame["began"] >= 6 and frame["scene"] == 1 and frame["stage"] == 2
    labels = found.labels
    assert labels[20, 20] == labels[20, 100]
    assert len({labels[20, 20], labels[70, 15], labels[70, 70], labels[80, 110]}) == 4
    lines = told["python"].splitlines()
    assert len(lines) == 3 and "seeds=" not in lines[1] and "seeds={1: [(20, 20), (20, 100)], 2: [(70, 15)]" in lines[2]
    assert told["command"] is None and "--seeds" in told["note"]
    same(found, repeated(told["python"]))
    assert found.python_code in told["python"] or found.python_code.splitlines()[-1] in lines
    assert found.summary()["seeds"] == {1: [(20, 20), (20, 100)], 2: [(70, 15)], 5: [(70, 70)], 6: [(80, 110)]}
    assert len(later["python"].splitlines()) == 4 and "seeds=" not in later["python"].splitlines()[3]


def test_seeds_in_one_site_cut_it_and_restart_the_chains(session):
    async def used():
        await session.apply(UserSettings.from_json({"chains": 1}))
        await run_sweeps(session, 3)
        site = session.sites()
        rows, columns = np.nonzero(site == site[30, 30])
        pixels = [[int(rows[i]), int(columns[i])] for i in (0, -1)]
        applied = await session.apply(
            UserSettings.from_json({"chains": 1, "seeds": {"1": pixels[:1], "2": pixels[1:]}})
        )
        await run_sweeps(session, 3)
        return applied, await session.segmentation(), await session.repeat(), pixels, session.frame(0, 0)

    applied, found, told, (first, second), frame = asyncio.run(used())
    assert applied == {"restarted": True, "note": CUT} and frame["scene"] == 2
    assert found.labels[tuple(first)] != found.labels[tuple(second)]
    same(found, repeated(told["python"]))


@pytest.mark.parametrize(
    "seeds", [[], [1], "x", {"1": []}, {"1": [[1]]}, {"1": [[0.5, 1]]}, {"a": [[1, 1]]}, {"1": [[True, 1]]}], ids=str
)
def test_seeds_that_are_none_are_refused(seeds):
    if seeds == []:
        assert UserSettings.from_json({"seeds": seeds}).seeds == ()
        return
    with pytest.raises(ss.InvalidInput, match="seeds must be the pixels of each seed"):
        UserSettings.from_json({"seeds": seeds})


def test_seeds_that_contradict_each_other_change_nothing(session):
    async def used():
        await session.apply(UserSettings.from_json({"chains": 1}))
        await run_sweeps(session, 2)
        run = session.loop.chain_run
        for seeds in ({"1": [[1, 1]], "2": [[1, 1]]}, {"1": [[1, 999]]}):
            with pytest.raises(ss.InvalidInput, match="seeds must"):
                await session.apply(UserSettings.from_json({"chains": 1, "seeds": seeds}))
        with pytest.raises(ss.InvalidInput, match="seeds must be left out where clusters need not be connected"):
            await session.apply(UserSettings.from_json({"preset": "paper", "seeds": {"1": [[1, 1]]}}))
        assert session.loop.chain_run is run and session.settings == UserSettings(chains=1)

    asyncio.run(used())


def test_an_export_that_cannot_be_written_gets_one_sentence(path, monkeypatch):
    found = ss.segment(path, sweeps=2, chains=1, rng=0)
    assert handlers._file_content(found, "labels.png").startswith(b"\x89PNG")
    monkeypatch.setattr("spinseg.segmentation.files.MAX_PNG_LABELS", found.n_clusters - 1)
    with pytest.raises(Refused, match=r"^There is no labels\.png: a PNG holds .* labels\.tif has them all\.$"):
        handlers._file_content(found, "labels.png")
    assert json.loads(handlers._file_content(found, "result.json"))["left_out"]


@exhaustive
def test_a_prior_that_forbids_the_present_partitions_restarts_the_chains(session):
    async def used():
        await session.apply(UserSettings.from_json({"start": "singletons"}))
        await session.loop.step()
        told = await session.apply(UserSettings.from_json({"start": "singletons", "prior": "potts", "labels": 2}))
        await session.loop.step()
        return told, session.frame(0, 0), await session.segmentation(), await session.repeat()

    told, frame, found, snippet = asyncio.run(used())
    assert told == {"restarted": True, "note": FORBIDDEN} and frame["note"] == FORBIDDEN and frame["began"] == 0
    assert max(chain["n_clusters"] for chain in frame["chains"]) <= 2
    same(found, repeated(snippet["python"]))


def test_a_restart_repeats_the_run(session):
    async def used():
        runs = []
        await session.apply(UserSettings())
        for _ in range(2):
            for _ in range(6):
                await session.loop.step()
            runs.append(session.frame(0, 0))
            await session.restart()
        return runs, session.frame(0, 0)

    (first, second), rest = asyncio.run(used())
    assert first["traces"] == second["traces"] and rest["sweeps"] == 0
    assert [c["labels"] for c in first["chains"]] == [c["labels"] for c in second["chains"]]
    assert second["stage"] == first["stage"] + 1 and second["scene"] == first["scene"]


def test_settings_that_change_the_sites_prepare_the_image_again(session):
    async def used():
        await session.apply(UserSettings())
        before = session.sites()
        await session.loop.step()
        told = await session.apply(UserSettings(n_sites=40))
        return before, session.sites(), told, session.frame(0, 0)

    before, after, told, frame = asyncio.run(used())
    assert told["restarted"] and frame["scene"] == 2 and frame["n_sites"] == after.max() + 1 < before.max()
    assert before.shape == after.shape == session.image.shape[:2]


async def until_outlined(session):
    """Wait for the outlines of all that was drawn."""
    await until(lambda: session.frame(0, 0)["outlined"] == session.frame(0, 0)["sweeps"])


@pytest.mark.parametrize("preset", ["photo", "classes"])
def test_maps_are_made_from_the_draws_so_far_with_refined_outlines(session, preset):
    async def used():
        await session.apply(UserSettings(preset=preset))
        await run_sweeps(session, 20)
        await until_outlined(session)
        return await session.segmentation(), await session.boundaries(), await session.together(3)

    found, boundaries, together = asyncio.run(used())
    np.testing.assert_array_equal(session.outlines(), found.sites)
    np.testing.assert_allclose(boundaries / 255, found.boundary_probability, atol=0.003)
    np.testing.assert_allclose(together / 255, co_clustering(found.chains.labels, 3), atol=0.003)
    if preset == "photo":  # so few sweeps may leave all in one class, without an outline to refine
        assert (session.outlines() != session.sites()).any()
        assert separation_probability(found.chains.labels, found.model.graph.edges).max() > 0.9


def test_the_page_has_the_outlines_of_the_exports_whenever_the_chains_rest(session):
    async def used():
        await session.apply(UserSettings())
        before = session.sites()
        np.testing.assert_array_equal(session.outlines(), before)
        for _ in range(2):
            await run_sweeps(session, session.frame(0, 0)["sweeps"] + 4)
            await until_outlined(session)
            np.testing.assert_array_equal(session.outlines(), (await session.segmentation()).sites)
        np.testing.assert_array_equal(session.sites(), before)
        refined = session.outlines()
        await session.restart()  # the sites are the same
        assert session.frame(0, 0)["outlined"] == 0
        np.testing.assert_array_equal(session.outlines(), refined)
        await session.apply(UserSettings(n_sites=40))
        np.testing.assert_array_equal(session.outlines(), session.sites())
        return before, refined, session.outlines()

    before, refined, others = asyncio.run(used())
    assert (before != refined).any() and others.max() < before.max()


def test_classes_have_a_result_while_the_chains_run_once_their_draws_have_few_clusters(session, monkeypatch):
    monkeypatch.setattr("spinseg.app.run_loop.MAX_ESTIMATED_CLUSTERS", 0)

    async def used():
        await session.apply(UserSettings(preset="classes", chains=1, start="singletons"))
        session.loop.start(1.0)  # which leaves the chain at rest most of the time
        await until(lambda: session.frame(0, 0)["sweeps"])
        with pytest.raises(NotYet):
            await session.result()
        assert session.frame(0, 0)["outlined"] == 0
        await session.loop.pause()
        await until_outlined(session)
        return await session.result()

    assert asyncio.run(used())["n_regions"] >= 1


@exhaustive
def test_outlines_are_refined_now_and_then_while_the_chains_run(session, monkeypatch):
    monkeypatch.setattr("spinseg.app.outlines.IDLE_RATIO", 1)

    async def used():
        await session.apply(UserSettings(chains=1))
        session.loop.start(None)
        for _ in range(2):
            last = session.frame(0, 0)["outlined"]
            await until(lambda: session.frame(0, 0)["outlined"] > last)  # noqa: B023
        running = session.loop.running
        await session.loop.pause()
        return running

    assert asyncio.run(used())


def test_the_outlines_of_a_reduced_picture_are_refined_at_the_size_of_the_page(path, opened, monkeypatch):
    """They lie where the export has them, within a pixel of the page, and those at seeds stay where they were."""
    monkeypatch.setattr("spinseg.app.rendering.MAX_DISPLAYED_PIXELS", 90 * 120)
    monkeypatch.setattr("spinseg.segmentation.presets.PHOTO", replace(PRESETS["photo"], max_pixels=90 * 120))
    with Image.open(path) as small:
        large = np.asarray(small.resize((359, 269))) + np.random.default_rng(1).normal(0, 80, (269, 359, 3))
    session = opened(as_picture(large.clip(0, 255).astype(np.uint8)), "large.png")

    async def used():
        await session.apply(UserSettings(chains=1))
        await run_sweeps(session, 6)
        await until_outlined(session)
        found, outlines, before = await session.segmentation(), session.outlines(), session.sites()
        _, first = np.unique(np.where(outlines != before, before, -1), return_index=True)
        moved = np.stack(np.unravel_index(first[1:], before.shape), axis=1).tolist()
        seeds = {str(i): [[3 * row + 1, 3 * column + 1]] for i, (row, column) in enumerate(moved, 1)}
        await session.apply(UserSettings.from_json({"chains": 1, "seeds": seeds}))
        await run_sweeps(session, 6)
        await until_outlined(session)
        return found, outlines, before, moved

    found, outlines, before, moved = asyncio.run(used())
    assert outlines.shape == session.image.shape[:2] == (90, 120) and len(moved) > 2
    assert set(np.unique(outlines)) == set(np.unique(before))
    exported = found.labels[1::3, 1::3] - 1
    labels = found.partition[outlines][: exported.shape[0], : exported.shape[1]]
    assert (labels != exported).mean() < 0.03
    again = session.outlines()
    assert (again != before).any() and all(again[row, column] == before[row, column] for row, column in moved)


def test_results_at_other_details_are_those_of_the_segmentation(session, tmp_path):
    with Image.open(PICTURES["coffee"].path) as image:
        image.resize((180, 120)).save(tmp_path / "small.png")
    session = Session(read_picture(tmp_path / "small.png"), "small.png", session.threads)  # whose details differ

    async def used():
        await session.apply(UserSettings(detail=0.2))
        await run_sweeps(session, 12)
        results = {detail: await session.result(detail) for detail in (None, 0.2, 0.9)}
        found, answers = await session.segmentation(), await session.answers(10)
        await session.apply(UserSettings(preset="paper"))
        await session.loop.step()
        with pytest.raises(ss.InvalidInput, match="detail must be left out where draws have none"):
            await session.result(0.5)
        return results, found, answers, await session.result(), await session.answers(3)

    results, found, answers, plain, few = asyncio.run(used())
    assert results[None] == results[0.2] and results[0.2]["detail"] == 0.2 and plain["detail"] is None
    assert results[0.2]["n_regions"] < results[0.9]["n_regions"]
    for detail in (0.2, 0.9):
        labels = np.frombuffer(b64decode(results[detail]["labels"]), "<u2")
        partition = found.at(detail).partition
        np.testing.assert_array_equal(labels[:, None] == labels, partition[:, None] == partition)
        assert results[detail]["n_regions"] == found.at(detail).n_clusters
    drawn = [f"Detail {answer.detail:.2f}: " for answer in spread_draws(found.chains)]
    assert [each["words"][: len(words)] for each, words in zip(answers, drawn, strict=True)] == drawn
    for each in [*answers, *few]:
        with Image.open(io.BytesIO(b64decode(each["picture"]))) as image:
            assert image.format == "JPEG" and image.size == (180, 120)
    assert 1 <= len(few) <= 3 and all("cluster" in each["words"] for each in few)


def test_frames_contain_each_value_of_the_traces_once(session):
    async def used():
        await session.apply(UserSettings(chains=2))
        first = session.frame(-1, 0)
        await session.loop.step()
        await session.loop.step()
        second = session.frame(first["stage"], first["sweeps"])
        await session.loop.step()
        third = session.frame(second["stage"], second["sweeps"])
        return [first, second, third], (await session.segmentation()).chains

    frames, chains = asyncio.run(used())
    assert [frame["traces"]["from"] for frame in frames] == [0, 0, 2]
    for name, whole in chains._traces.items():
        sent = np.concatenate([frame["traces"][name] for frame in frames], axis=1)
        shown = whole[:, chains.n_components // 2 :: chains.n_components]
        np.testing.assert_allclose(sent, shown, atol=0.005)


@pytest.mark.parametrize("by_steps", effort([True], [False, True]))
def test_two_paused_chains_have_the_diagnostics_of_the_python_code(session, by_steps):
    async def used():
        await session.apply(UserSettings(chains=2))
        if by_steps:
            for _ in range(44):
                await session.loop.step()
        else:
            await run_sweeps(session, 90)
        end, seen = time.monotonic() + PATIENCE, None
        found = (await session.segmentation()).diagnostics
        wanted = {name: round(row.r_hat, 6) for name, row in found.table.items()}
        while time.monotonic() < end and seen != wanted:
            await asyncio.sleep(0.05)
            told = session.frame(0, 0)["agreement"]
            seen = told and {name: round(float(value), 6) for name, value in told["r_hat"].items()}
        assert seen == wanted and told["converged"] == found.converged
        assert told["agreement"] == pytest.approx(found.agreement)
        assert told["standard_error"] == pytest.approx(found.standard_error)
        told_of = session.loop.chain_run.problem.settings, session.frame(0, 0)["sweeps"]
        assert told["verdict"] == verdict_sentences(found, *told_of, interrupted=True)
        assert "converged" in told["headline"]
        assert told["largest_r_hat"] == pytest.approx(found.r_hat) and told["ess"] == pytest.approx(found.ess)

    asyncio.run(used())


def test_of_chains_of_clusters_it_is_said_whether_they_agree(session):
    async def used():
        await session.apply(UserSettings(preset="paper", chains=2))
        await run_sweeps(session, 44)
        await until(lambda: session.frame(0, 0)["agreement"] is not None)
        return session.frame(0, 0)["agreement"], await session.segmentation()

    told, found = asyncio.run(used())
    assert "converge" in told["headline"] and "clusters have " in told["verdict"] and not found.calibrated
    assert "human annotations for the preset paper" in told["verdict"]


def test_one_chain_is_not_diagnosed(session):
    async def used():
        await session.apply(UserSettings(chains=1))
        await run_sweeps(session, 60)
        return session.frame(0, 0)["agreement"]

    assert asyncio.run(used()) is None


def test_many_sites_do_not_start_as_singletons_by_default(session):
    few, many = (UserSettings(preset="paper", chains=3, n_sites=n) for n in (900, 9000))
    assert few.starts(200_000) == ("greedy", "one", "singletons") and many.starts(200_000) == ("greedy", "one", "one")
    assert UserSettings(chains=3).starts(200_000) == PRESETS["photo"].init
    assert UserSettings(preset="paper", chains=4).starts(10**6)[2] == "one"
    assert UserSettings(preset="classes", chains=3).starts(10**6) == ("one", "singletons", "one")
    assert UserSettings(preset="classes", chains=1).starts(10**6) == "one"
    assert UserSettings(start="singletons", n_sites=9000).starts(200_000) == "singletons"


def test_pausing_and_starting_in_quick_succession_leaves_the_chains_running(session):
    async def used():
        await session.apply(UserSettings(chains=1))
        for turn in range(60):
            session.loop.start(None)
            await asyncio.sleep(0.001 * (turn % 7))
            await session.loop.pause()
        at = session.frame(0, 0)["sweeps"]
        session.loop.start(None)
        await until(lambda: session.frame(0, 0)["sweeps"] > at)
        return session.loop.state

    assert asyncio.run(used()) in ("running", "done")


def test_the_speed_is_not_exceeded(session):
    async def used():
        await session.apply(UserSettings(chains=1))
        began = time.monotonic()
        session.loop.start(10.0)
        await until(lambda: session.frame(0, 0)["sweeps"] >= 8)
        await session.loop.pause()
        return session.frame(0, 0)["sweeps"], time.monotonic() - began

    sweeps, seconds = asyncio.run(used())
    assert sweeps <= 10 * seconds + 1


def test_a_lower_speed_takes_effect_at_once(session):
    async def used():
        await session.apply(UserSettings(chains=1))
        session.loop.start(None)
        await until(lambda: session.frame(0, 0)["sweeps"] > 20)
        session.loop.start(5.0)
        async with session.loop.lock:  # after the round in progress
            at, began = session.frame(0, 0)["sweeps"], time.monotonic()
        await until(lambda: session.frame(0, 0)["sweeps"] >= at + 4)
        await session.loop.pause()
        return session.frame(0, 0)["sweeps"] - at, time.monotonic() - began

    sweeps, seconds = asyncio.run(used())
    assert sweeps <= 5 * seconds + 2


def test_there_are_no_results_before_the_first_sweep(session):
    async def used():
        for wanted in (session.restart, session.loop.step):
            with pytest.raises(NotYet):
                await wanted()
        await session.apply(UserSettings())
        for wanted in (session.result, session.boundaries, session.segmentation, session.repeat):
            with pytest.raises(NotYet):
                await wanted()

    asyncio.run(used())


def test_the_run_ends_at_the_maximum_number_of_sweeps(session, monkeypatch):
    monkeypatch.setattr("spinseg.app.run_loop.MAX_SWEEPS", 12)

    async def used():
        await session.apply(UserSettings())
        await run_sweeps(session, 99)
        return session.loop.state, session.frame(0, 0)["sweeps"]

    assert asyncio.run(used()) == ("done", 12)


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


def test_clusters_of_other_chains_are_numbered_like_those_of_the_first():
    first, own = np.array([7, 7, 7, 2, 2, 2]), np.array([0, 0, 1, 1, 7, 5])
    assert match_labels(np.array([0, 0, 0, 1, 1, 1]), first, own).tolist() == [7, 7, 7, 2, 2, 2]
    assert match_labels(np.array([0, 0, 0, 1, 1, 2]), first, own).tolist() == [7, 7, 7, 2, 2, 5]


def test_frames_can_be_made_at_any_time(session):
    async def used():
        for chosen in (UserSettings(), UserSettings(prior="dp"), UserSettings(n_sites=50)):
            changing = asyncio.create_task(session.apply(chosen))
            while not changing.done():
                frame = session.frame(0, 0)
                assert len(frame["chains"]) == (2 if frame["stage"] else 0)
                await asyncio.sleep(0.001)

    asyncio.run(used())


@pytest.mark.parametrize("control", CONTROLS, ids=lambda control: control.name)
def test_controls_are_checked_against_their_ranges(control):
    prior = next((name for name in ("py", "finite", "preset") if control.name in prior_parameters(name)), "preset")
    for value in (control.least, control.most):
        assert getattr(UserSettings.from_json({"prior": prior, control.name: value}), control.name) == value
    for value in (control.least - 1, control.most + 1, "1", True, [1], float("nan"), float("inf"), 10**400):
        with pytest.raises(ValueError, match=f"^{control.name} must "):
            UserSettings.from_json({"prior": prior, control.name: value})


def test_transparent_pixels_are_masked_and_12_bits_are_displayed(path, tmp_path):
    with Image.open(path) as picture:
        grey = np.asarray(picture.convert("L"))
    deep, inside = grey.astype(np.uint16) * 16, np.ones(grey.shape, bool)
    inside[30:70, 20:50] = False
    clear = np.dstack([deep, deep, deep, np.where(inside, 4095, 0)]).astype(np.uint16)
    tifffile.imwrite(tmp_path / "deep.tif", clear, photometric="rgb", extrasamples=["unassalpha"])

    async def used(session):
        await session.apply(UserSettings.from_json({"n_sites": 200, "chains": 1}))
        await run_sweeps(session, 3)
        return await session.segmentation(), await session.repeat()

    with ThreadPoolExecutor(1) as chains, ThreadPoolExecutor(1) as others:
        session = Session(read_picture(tmp_path / "deep.tif"), str(tmp_path / "deep.tif"), Threads(chains, others))
        found, told = asyncio.run(used(session))
        session.close()
    assert np.ptp(session.image[inside]) > 200
    assert ((session.sites() == -1) == ~inside).all() and ((found.labels == 0) == ~inside).all()
    same(found, repeated(told["python"]))


def test_detail_is_refused_by_presets_without_it():
    with pytest.raises(ValueError, match=r"^detail must be left out"):
        UserSettings(preset="paper", detail=0.2).settings(10_000)
    only = {control.name: control.only for control in CONTROLS}["detail"]
    assert [name for name, settings in PRESETS.items() if settings.uses_detail] == [only]


def test_parameters_that_a_prior_does_not_have_are_dropped():
    assert UserSettings.from_json({"prior": "potts", "alpha": 3, "labels": 4}) == UserSettings(prior="potts", labels=4)
    assert UserSettings.from_json({"preset": "paper", "detail": 0.2}) == UserSettings(preset="paper")
    for sent in ({"prior": "crp"}, {"preset": None}, {"start": 1}, {"gamma": 1}):
        with pytest.raises(ValueError):
            UserSettings.from_json(sent)


def test_the_description_has_every_control():
    description = page_description(4, 1, 1)
    names = {control["name"] for control in description["controls"]} | {"preset", "prior", "start"}
    assert names | {"seeds"} == set(vars(UserSettings()))  # which are drawn
    assert {start["name"] for start in description["starts"]} == {"different", *STARTS}
    assert [preset["name"] for preset in description["presets"]] == list(PRESETS)
    for prior in description["priors"]:
        assert set(prior["defaults"]) <= set(prior["parameters"]) <= names and prior["about"]
