"""A new preset is one file: segment, the command line and the web app know it as soon as it is imported."""

import asyncio
import importlib.util
import json
import sys

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import spinseg as ss
from command import spinseg
from spinseg.app.controls import UserSettings, controls, page_description
from spinseg.app.session import Session
from spinseg.cli.program import app
from spinseg.image.io import read_picture
from spinseg.segmentation.presets.preset import Preset

FILE = '''
"""`Tiles`: squares of a grid by their mean intensity."""

from dataclasses import dataclass
from typing import ClassVar

import spinseg as ss
from spinseg.image.features import site_means
from spinseg.segmentation.presets.option import Slider, option
from spinseg.segmentation.presets.preset import Preset


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Tiles(Preset):
    name: ClassVar[str] = "tiles"
    about: ClassVar[str] = "Squares of a grid by their mean intensity."
    usual_sweeps: ClassVar[int] = 20

    sites: str = "grid"
    prior: ss.PartitionPrior = ss.DirichletProcess(0.5)
    spread: float = option(
        0.1, "Standard deviation of intensities in a cluster.", above=0, slider=Slider(0.01, 1, "log")
    )

    def model(self, image, sites, graph, maps=None, seeds=None):
        levels = site_means(image.picture.codes / 65535, sites)[:, :1]
        return ss.Model(graph, ss.DiagonalGaussian(levels, rate=2 * self.spread**2), self.prior, beta=0.2)
'''
HELP = "Standard deviation of intensities in a cluster."


@pytest.fixture
def tiles(tmp_path):
    """The preset, until the end of a test."""
    path = tmp_path / "tiles.py"
    path.write_text(FILE)
    spec = importlib.util.spec_from_file_location("tiles", path)
    sys.modules["tiles"] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module.Tiles
    del Preset.known["tiles"], sys.modules["tiles"]
    assert "spread" not in controls()


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """An image of two halves with noise."""
    image = np.full((48, 64), 60) + 120 * (np.arange(64) >= 32)
    image = image + np.random.default_rng(0).normal(0, 10, image.shape)
    Image.fromarray(image.clip(0, 255).astype(np.uint8)).save(path := tmp_path_factory.mktemp("images") / "halves.png")
    return path


def test_it_segments_by_value_and_by_name_and_its_python_code_repeats_it(tiles, path):
    found, named = ss.segment(path, tiles(spread=0.2), rng=0), ss.segment(path, "tiles", spread=0.2, rng=0)
    assert len({found.labels[20, 10], found.labels[20, 50]}) == 2
    assert repr(named.preset) == "Tiles(spread=0.2)" and found.chains.n_sweeps == 20 and found.sites.max() > 10
    assert found.python_code == f"ss.segment({str(path)!r}, 'tiles', spread=0.2, rng=0)"
    for again in (named, eval(found.python_code, {"ss": ss})):
        np.testing.assert_array_equal(found.labels, again.labels)
    with pytest.raises(ss.InvalidInput, match="spread must be a finite number above 0: got -1"):
        tiles(spread=-1)
    line = r"^unknown option: detail\. The preset tiles has .*, spread\. detail is an option of auto and photo and measured and objects\.$"
    with pytest.raises(ss.InvalidInput, match=line):
        ss.segment(path, "tiles", detail=0.5)


def test_the_command_has_its_option(tiles, path, tmp_path):
    reported = " ".join(CliRunner().invoke(app, ["segment", "--help"]).output.split())
    assert f"Model, tiles: --spread <float> {HELP} [default: 0.1]" in reported and "--detail <float>" in reported
    spinseg("segment", path, "--preset", "tiles", "--spread", "0.2", "--out", tmp_path, "--quiet", check=0)
    labels = np.asarray(Image.open(tmp_path / "halves" / "labels.png"))
    np.testing.assert_array_equal(labels, ss.segment(path, tiles(spread=0.2), rng=0).labels)
    settings = json.loads((tmp_path / "halves" / "result.json").read_text())["settings"]
    assert (settings["preset"], settings["spread"]) == ("tiles", 0.2)
    run = spinseg("segment", path, "--spread", "0.2", "--out", tmp_path, check=2)
    assert run.stderr.startswith("spinseg: unknown option: spread. The preset auto has n_sites, ")


def test_the_web_app_has_a_control_for_its_slider(tiles, path):
    control, described = controls()["spread"], page_description()
    assert (control.label, control.about, control.presets) == ("Spread", HELP, ("tiles",))
    assert (control.least, control.most, control.scale, control.group) == (0.01, 1, "log", "posterior")
    assert described["presets"][-1] == {"name": "tiles", "about": tiles.about, "connected": False} | {
        "values": {"spread": 0.1}
    }
    assert UserSettings.from_json({"spread": 0.2}).numbers == {}  # of no effect on photo

    async def used(session):
        await session.apply(UserSettings.from_json({"preset": "tiles", "spread": 0.2, "seed": 3}))
        await session.loop.step()
        before = await session.repeat()
        await session.apply(UserSettings.from_json({"preset": "tiles", "spread": 0.3, "seed": 3}))
        await session.loop.step()
        found = []
        await session.export(lambda each: found.append(each) or b"")
        return before, session.loop.frame(0, 0), found[0], await session.repeat()

    session = Session(read_picture(path), str(path))
    before, frame, found, after = asyncio.run(used(session))
    session.loop.close()
    assert "--preset tiles --spread 0.2 --sweeps 1 " in before["command"]
    assert frame["began"] == 1
    exec(after["python"], names := {})
    np.testing.assert_array_equal(found.labels, names["found"].labels)
    assert "spread=0.3" in found.python_code.splitlines()[-1]
