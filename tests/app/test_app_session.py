"""The page without a browser: chains that go on, and what is exported, against the Python and the command it names."""

import asyncio
import json
import shlex
import time
from base64 import b64decode
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tifffile
from PIL import Image

pytest.importorskip("starlette", reason="the extra [web] is not installed")

import spinseg as ss
from conftest import PATIENCE
from spinseg.app import handlers as answers
from spinseg.app.controls import CONTROLS, about, parameters
from spinseg.app.guard import Refused
from spinseg.app.looks import keeping_numbers
from spinseg.app.session import FORBIDDEN, NotYet, Page, Threads
from spinseg.app.user_settings import Chosen
from spinseg.cli import app as command_line
from spinseg.image.io import read_picture
from spinseg.inference.estimates.pairs import co_clustering, separation_probability
from spinseg.inference.starts import STARTS
from spinseg.segmentation.settings import PRESETS


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
def page(path):
    with ThreadPoolExecutor(4) as chains, ThreadPoolExecutor(2) as others:
        made = Page(read_picture(path), str(path), Threads(chains, others))
        yield made
        made.close()


def repeated(python):
    """What the snippet gives."""
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


async def swept(page, sweeps):
    """Let it run, and pause after at least so many sweeps."""
    page.run(None)
    while page.frame(0, 0)["sweeps"] < sweeps and page.state == "running":
        await asyncio.sleep(0.01)
    await page.pause()


@pytest.mark.parametrize(
    "sent",
    [
        {},
        {"start": "one", "chains": 1, "seed": 3},
        {"preset": "paper", "prior": "py", "alpha": 2, "discount": 0.3, "chains": 3, "n_sites": 60},
        {"prior": "potts", "start": "singletons", "min_size": 2, "detail": 0.8},
        {"prior": "mfm", "labels": 4, "beta": 0.5, "lam": 3, "count_weight": 0.01, "max_size": 300},
    ],
    ids=str,
)
def test_what_is_exported_is_what_the_snippet_and_the_command_give(page, sent, tmp_path):
    async def used():
        await page.choose(Chosen.read(sent))
        await swept(page, 11)
        return await page.segmentation(), await page.repeat(), await page.result()

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


def test_chains_go_on_under_another_posterior_and_the_snippet_repeats_it(page, tmp_path):
    async def used():
        await page.choose(Chosen.read({"preset": "paper", "seed": 5}))
        await swept(page, 7)
        at = page._stage.labels().copy()
        one = await page.choose(Chosen.read({"preset": "paper", "seed": 5, "beta": 0.3}))
        np.testing.assert_array_equal(page._stage.labels(), at)
        two = await page.choose(Chosen.read({"preset": "paper", "seed": 5, "prior": "py"}))  # before a sweep is made
        np.testing.assert_array_equal(page._stage.labels(), at)
        await page.step()
        await page.step()
        three = await page.choose(Chosen.read({"preset": "paper", "seed": 5, "prior": "py", "count_weight": 0.02}))
        await swept(page, 5)
        assert [one, two, three] == [{"restarted": False, "note": None}] * 3
        return await page.segmentation(), await page.repeat(), page.frame(0, 0)

    found, told, frame = asyncio.run(used())
    assert told["python"].count("ss.segment(") == 3 and told["command"] is None and told["note"]
    same(found, repeated(told["python"]))
    assert frame["began"] >= 9 and frame["stage"] == 4
    assert told["python"] == f"import spinseg as ss\n{found.repeat}"
    found.save(tmp_path, ["result.json"])
    assert [file.name for file in tmp_path.iterdir()] == ["result.json"]
    assert json.loads((tmp_path / "result.json").read_text())["python"] == found.repeat


def test_an_export_that_cannot_be_written_is_told(path, monkeypatch):
    found = ss.segment(path, sweeps=2, chains=1, rng=0)
    assert answers._saved(found, "labels.png").startswith(b"\x89PNG")
    monkeypatch.setattr("spinseg.segmentation.result.MOST_LABELS_PNG", found.n_clusters - 1)
    with pytest.raises(Refused, match=r"^There is no labels\.png: a PNG holds .* labels\.tif has them all\.$"):
        answers._saved(found, "labels.png")
    assert json.loads(answers._saved(found, "result.json"))["left_out"]


def test_a_prior_that_forbids_where_chains_are_makes_them_begin_anew(page):
    async def used():
        await page.choose(Chosen.read({"start": "singletons"}))
        await page.step()
        told = await page.choose(Chosen.read({"start": "singletons", "prior": "potts", "labels": 2}))
        await page.step()
        return told, page.frame(0, 0), await page.segmentation(), await page.repeat()

    told, frame, found, snippet = asyncio.run(used())
    assert told == {"restarted": True, "note": FORBIDDEN} and frame["note"] == FORBIDDEN and frame["began"] == 0
    assert max(chain["n_clusters"] for chain in frame["chains"]) <= 2
    same(found, repeated(snippet["python"]))


def test_a_restart_repeats_the_run(page):
    async def used():
        runs = []
        await page.choose(Chosen())
        for _ in range(2):
            for _ in range(6):
                await page.step()
            runs.append(page.frame(0, 0))
            await page.restart()
        return runs, page.frame(0, 0)

    (first, second), rest = asyncio.run(used())
    assert first["traces"] == second["traces"] and rest["sweeps"] == 0
    assert [c["labels"] for c in first["chains"]] == [c["labels"] for c in second["chains"]]
    assert second["stage"] == first["stage"] + 1 and second["scene"] == first["scene"]


def test_settings_that_change_the_sites_make_a_new_scene(page):
    async def used():
        await page.choose(Chosen())
        before = page.sites()
        await page.step()
        told = await page.choose(Chosen(n_sites=40))
        return before, page.sites(), told, page.frame(0, 0)

    before, after, told, frame = asyncio.run(used())
    assert told["restarted"] and frame["scene"] == 2 and frame["n_sites"] == after.max() + 1 < before.max()
    assert before.shape == after.shape == page.shown.shape[:2]


def test_maps_are_made_from_the_draws_so_far(page):
    async def used():
        await page.choose(Chosen())
        await swept(page, 20)
        return await page.segmentation(), await page.boundaries(), await page.together(3)

    found, boundaries, together = asyncio.run(used())
    np.testing.assert_allclose(boundaries / 255, found.boundary_probability, atol=0.003)
    np.testing.assert_allclose(together / 255, co_clustering(found.chains.labels, 3), atol=0.003)
    assert separation_probability(found.chains.labels, found.model.graph.edges).max() > 0.9


def test_frames_carry_each_number_of_the_traces_once(page):
    async def used():
        await page.choose(Chosen(chains=2))
        first = page.frame(-1, 0)
        await page.step()
        await page.step()
        second = page.frame(first["stage"], first["sweeps"])
        await page.step()
        third = page.frame(second["stage"], second["sweeps"])
        return [first, second, third], (await page.segmentation()).chains

    frames, chains = asyncio.run(used())
    assert [frame["traces"]["from"] for frame in frames] == [0, 0, 2]
    for name, whole in (("log_posterior", chains.log_posterior), ("n_clusters", chains.n_clusters)):
        sent = np.concatenate([frame["traces"][name] for frame in frames], axis=1)
        np.testing.assert_allclose(sent, whole, atol=0.005)


@pytest.mark.parametrize("by_steps", [False, True])
def test_two_chains_at_rest_are_judged_as_the_snippet_is(page, by_steps):
    async def used():
        await page.choose(Chosen(chains=2))
        if by_steps:
            for _ in range(44):
                await page.step()
        else:
            await swept(page, 90)
        end, seen = time.monotonic() + PATIENCE, None
        found = (await page.segmentation()).diagnostics
        wanted = {name: round(row.r_hat, 6) for name, row in found.table.items()}
        while time.monotonic() < end and seen != wanted:
            await asyncio.sleep(0.05)
            told = page.frame(0, 0)["agreement"]
            seen = told and {name: round(float(value), 6) for name, value in told["r_hat"].items()}
        assert seen == wanted and told["verdict"] == found.verdict and told["agree"] == found.agree

    asyncio.run(used())


def test_one_chain_is_not_judged(page):
    async def used():
        await page.choose(Chosen(chains=1))
        await swept(page, 60)
        return page.frame(0, 0)["agreement"]

    assert asyncio.run(used()) is None


def test_many_sites_do_not_start_alone_unasked(page):
    few, many = Chosen(chains=3), Chosen(chains=3, n_sites=9000)
    assert few.starts(200_000) == ("greedy", "one", "singletons") and many.starts(200_000) == ("greedy", "one", "one")
    assert Chosen(preset="paper", chains=4).starts(10**6)[2] == "one"
    assert Chosen(start="singletons", n_sites=9000).starts(200_000) == "singletons"


def test_pausing_and_starting_in_haste_leaves_it_running(page):
    async def used():
        await page.choose(Chosen(chains=1))
        for turn in range(60):
            page.run(None)
            await asyncio.sleep(0.001 * (turn % 7))
            await page.pause()
        at = page.frame(0, 0)["sweeps"]
        page.run(None)
        await until(lambda: page.frame(0, 0)["sweeps"] > at)
        return page.state

    assert asyncio.run(used()) in ("running", "done")


def test_a_speed_is_kept(page):
    async def used():
        await page.choose(Chosen(chains=1))
        began = time.monotonic()
        page.run(10.0)
        await until(lambda: page.frame(0, 0)["sweeps"] >= 8)
        await page.pause()
        return page.frame(0, 0)["sweeps"], time.monotonic() - began

    sweeps, seconds = asyncio.run(used())
    assert sweeps <= 10 * seconds + 1


def test_a_slower_speed_holds_at_once(page):
    async def used():
        await page.choose(Chosen(chains=1))
        page.run(None)
        await until(lambda: page.frame(0, 0)["sweeps"] > 20)
        page.run(5.0)
        async with page._lock:  # after the round in progress
            at, began = page.frame(0, 0)["sweeps"], time.monotonic()
        await until(lambda: page.frame(0, 0)["sweeps"] >= at + 4)
        await page.pause()
        return page.frame(0, 0)["sweeps"] - at, time.monotonic() - began

    sweeps, seconds = asyncio.run(used())
    assert sweeps <= 5 * seconds + 2


def test_nothing_can_be_had_before_the_first_sweep(page):
    async def used():
        for wanted in (page.restart, page.step):
            with pytest.raises(NotYet):
                await wanted()
        await page.choose(Chosen())
        for wanted in (page.result, page.boundaries, page.segmentation, page.repeat):
            with pytest.raises(NotYet):
                await wanted()

    asyncio.run(used())


def test_room_for_sweeps_ends_and_says_so(page, monkeypatch):
    monkeypatch.setattr("spinseg.app.chain_run.MOST_SWEEPS", 12)

    async def used():
        await page.choose(Chosen())
        await swept(page, 99)
        return page.state, page.frame(0, 0)["sweeps"]

    assert asyncio.run(used()) == ("done", 12)


def test_clusters_keep_their_numbers():
    rng = np.random.default_rng(1)
    before = rng.integers(0, 6, 300).astype(np.int32)
    after = before.copy()
    after[:20] = 9
    labels = np.unique(rng.permutation(10)[after], return_inverse=True)[1].astype(np.int32)
    kept = keeping_numbers(labels, before)
    assert (kept[20:] == before[20:]).all() and set(kept[:20]) == {6}
    alone = keeping_numbers(np.arange(5, dtype=np.int32), np.zeros(5, np.int32))
    assert sorted(alone) == [0, 1, 2, 3, 4]
    assert (keeping_numbers(np.zeros(5, np.int32), np.array([3, 3, 1, 3, 2], np.int32)) == 3).all()


def test_clusters_of_other_chains_are_numbered_like_those_of_the_first():
    first, own = np.array([7, 7, 7, 2, 2, 2]), np.array([0, 0, 1, 1, 7, 5])
    assert keeping_numbers(np.array([0, 0, 0, 1, 1, 1]), first, own).tolist() == [7, 7, 7, 2, 2, 2]
    assert keeping_numbers(np.array([0, 0, 0, 1, 1, 2]), first, own).tolist() == [7, 7, 7, 2, 2, 5]


def test_one_can_look_at_any_moment(page):
    async def used():
        for chosen in (Chosen(), Chosen(prior="dp"), Chosen(n_sites=50)):
            changing = asyncio.create_task(page.choose(chosen))
            while not changing.done():
                frame = page.frame(0, 0)
                assert len(frame["chains"]) == (2 if frame["stage"] else 0)
                await asyncio.sleep(0.001)

    asyncio.run(used())


@pytest.mark.parametrize("control", CONTROLS, ids=lambda control: control.name)
def test_controls_are_checked_against_their_ranges(control):
    prior = next((name for name in ("py", "finite", "preset") if control.name in parameters(name)), "preset")
    for value in (control.least, control.most):
        assert getattr(Chosen.read({"prior": prior, control.name: value}), control.name) == value
    for value in (control.least - 1, control.most + 1, "1", True, [1], float("nan"), float("inf"), 10**400):
        with pytest.raises(ValueError, match=f"^{control.name} must "):
            Chosen.read({"prior": prior, control.name: value})


def test_what_is_transparent_is_outside_and_12_bits_are_seen(path, tmp_path):
    with Image.open(path) as picture:
        grey = np.asarray(picture.convert("L"))
    deep, inside = grey.astype(np.uint16) * 16, np.ones(grey.shape, bool)
    inside[30:70, 20:50] = False
    clear = np.dstack([deep, deep, deep, np.where(inside, 4095, 0)]).astype(np.uint16)
    tifffile.imwrite(tmp_path / "deep.tif", clear, photometric="rgb", extrasamples=["unassalpha"])

    async def used(page):
        await page.choose(Chosen.read({"n_sites": 200, "chains": 1}))
        await swept(page, 3)
        return await page.segmentation(), await page.repeat()

    with ThreadPoolExecutor(1) as chains, ThreadPoolExecutor(1) as others:
        page = Page(read_picture(tmp_path / "deep.tif"), str(tmp_path / "deep.tif"), Threads(chains, others))
        found, told = asyncio.run(used(page))
        page.close()
    assert np.ptp(page.shown[inside]) > 200
    assert ((page.sites() == -1) == ~inside).all() and ((found.labels == -1) == ~inside).all()
    same(found, repeated(told["python"]))


def test_detail_is_left_out_of_settings_that_have_none():
    with pytest.raises(ValueError, match=r"^detail must be left out"):
        Chosen(preset="paper", detail=0.2).settings(10_000)
    only = {control.name: control.only for control in CONTROLS}["detail"]
    assert [name for name, settings in PRESETS.items() if settings.has_detail] == [only]


def test_what_a_prior_does_not_have_is_left_out():
    assert Chosen.read({"prior": "potts", "alpha": 3, "labels": 4}) == Chosen(prior="potts", labels=4)
    assert Chosen.read({"preset": "paper", "detail": 0.2}) == Chosen(preset="paper")
    for sent in ({"prior": "crp"}, {"preset": None}, {"start": 1}, {"gamma": 1}):
        with pytest.raises(ValueError):
            Chosen.read(sent)


def test_the_page_is_told_of_every_control():
    told = about(4, 1, 1)
    names = {control["name"] for control in told["controls"]} | {"preset", "prior", "start"}
    assert names == set(vars(Chosen()))
    assert {start["name"] for start in told["starts"]} == {"different", *STARTS}
    for prior in told["priors"]:
        assert set(prior["defaults"]) <= set(prior["parameters"]) <= names and prior["about"]
