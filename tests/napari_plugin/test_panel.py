"""The panel in napari; skipped where napari or Qt cannot be imported or started."""

import os
import subprocess
import sys
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from test_results import squares

import spinseg as ss
from processes import wait_until
from spinseg.napari_plugin import results
from spinseg.napari_plugin.results import DETAILS
from spinseg.pictures import PICTURES
from spinseg.segmentation.presets.preset import Preset

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # those of napari and of what it imports
    pytest.mark.xdist_group("napari"),
]
PROBE = "from qtpy.QtWidgets import QApplication; application = QApplication([]); import napari.qt.threading"


@pytest.fixture(scope="module")
def application():
    """Qt without a display. It is tried in another process first, since Qt ends one in which it cannot start."""
    pytest.importorskip("napari", reason="the extra [napari] is not installed", exc_type=ImportError)
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    probe = subprocess.run([sys.executable, "-W", "ignore", "-c", PROBE], capture_output=True, text=True)
    if probe.returncode != 0:
        pytest.skip(f"Qt does not run here: {(probe.stderr.strip().splitlines() or ['it was ended'])[-1]}")
    from qtpy.QtWidgets import QApplication

    return QApplication.instance() or QApplication([])


@pytest.fixture
def viewer(application):
    """A viewer without a window."""
    from napari.components import ViewerModel

    return ViewerModel()


@pytest.fixture
def panel(application, viewer):
    from spinseg.napari_plugin.widget import SegmentationPanel

    panel = SegmentationPanel(viewer)
    panel.show()
    yield panel
    for worker in filter(None, (panel.worker, panel.fetcher)):
        worker.quit()
    until(application, lambda: panel.worker is None)
    panel.close()


@pytest.fixture
def cells(viewer):
    return viewer.add_image(squares(), name="cells", scale=(2, 3), translate=(5, 7))


@pytest.fixture
def endless(monkeypatch):
    """Sampling takes longer than any test."""
    monkeypatch.setattr(results, "segment", partial(ss.segment, sweeps=10**6))


def until(application, true):
    """Let Qt work until a condition holds."""

    def worked():
        application.processEvents()
        return true()

    wait_until(worked)


def press_segment(application, panel):
    """Press the button, and wait for the result."""
    panel.button.click()
    until(application, lambda: panel.worker is None)


def is_listening(panel):
    return panel._watch_click in panel.viewer.mouse_drag_callbacks


def click(panel, position, moved=0, button=1, modifiers=()):
    """Press the mouse at a position in the world, and release it."""
    event = SimpleNamespace(type="mouse_press", pos=np.zeros(2), position=position, button=button, modifiers=modifiers)
    if is_listening(panel):
        steps = panel._watch_click(panel.viewer, event)
        next(steps)
        event.type, event.pos = "mouse_move", np.full(2, moved)
        next(steps)
        event.type = "mouse_release"
        next(steps, None)


def test_a_segmentation_appears_where_its_image_is(application, panel, viewer, cells):
    press_segment(application, panel)
    assert [layer.name for layer in viewer.layers] == ["cells", "cells labels", "cells boundaries", "cells draws"]
    _, labels, boundaries, draws = viewer.layers
    np.testing.assert_array_equal(labels.data, ss.segment(squares(), rng=0).labels)
    for place in ((0, 0), (40, 60)):
        for layer in (labels, boundaries):
            assert layer.data_to_world(place) == cells.data_to_world(place)
        assert draws.data_to_world((3, *place)) == (3, *cells.data_to_world(place))
    assert viewer.layers.selection == {cells} and panel.status.text() == panel.result.in_words(0.65)
    assert labels.features["area"].sum() == squares().size and panel.button.text() == "Segment"


def test_the_same_image_again_updates_its_layers(application, panel, viewer, cells):
    press_segment(application, panel)
    labels = viewer.layers["cells labels"]
    labels.opacity = 0.25
    viewer.layers.remove("cells draws")
    cells.scale = (4, 4)
    cells.data = squares()[::-1]
    press_segment(application, panel)
    assert len(viewer.layers) == 4 and viewer.layers["cells labels"] is labels and "cells draws" in viewer.layers
    np.testing.assert_array_equal(labels.data, panel.result.segmentation.labels)
    assert labels.opacity == 0.25 and labels.scale.tolist() == [4, 4]
    viewer.layers.selection.active = viewer.add_image(squares(), name="others")
    press_segment(application, panel)
    assert len(viewer.layers) == 8 and "others labels" in viewer.layers


def test_the_slider_shows_other_details_of_the_same_draws(application, panel, viewer, cells):
    press_segment(application, panel)
    found, labels = panel.result.segmentation, viewer.layers["cells labels"]
    for detail in (1.0, 0.0, 0.65):
        panel.detail.setValue(DETAILS.index(detail))
        until(application, lambda: not panel.status.text().startswith("Estimating"))
        np.testing.assert_array_equal(labels.data, found.at(detail).labels)
        assert panel.status.text() == panel.result.in_words(detail)
    until(application, lambda: len(panel.result.views) == len(DETAILS))
    panel.detail.setValue(0)  # what is fetched is shown at once
    np.testing.assert_array_equal(labels.data, found.at(0.0).labels)


def test_the_slider_says_what_detail_to_begin_with(application, panel, viewer, cells):
    panel.detail.setValue(DETAILS.index(0.3))
    assert panel.detail_name.text() == "Detail 0.30"
    press_segment(application, panel)
    assert panel.result.segmentation.preset == ss.Photo(detail=0.3)
    panel.preset.setCurrentText("classes")
    assert not panel.detail.isEnabled()
    press_segment(application, panel)
    assert panel.result.segmentation.preset == ss.Classes()


@pytest.mark.parametrize("preset", Preset.known)
def test_the_panel_has_the_numbers_and_switches_of_a_preset(application, panel, viewer, cells, preset):
    kind = Preset.known[preset]
    panel.preset.setCurrentText(preset)
    wanted = {name: about for name, about in kind.options().items() if about.slider or about.kind is bool}
    assert panel.options.controls.keys() == wanted.keys() - {"detail"}
    for name, control in panel.options.controls.items():
        assert control.toolTip() == wanted[name].help
    assert panel.options.changed() == {}
    panel.options.controls["n_sites"].setText(" 60 ")
    panel.options.controls["lam"].setText("2")
    if preset == "classes":
        panel.options.controls["regions"].setChecked(True)
    press_segment(application, panel)
    more = {"regions": True} if preset == "classes" else {}
    assert panel.result.segmentation.preset == kind(n_sites=60, lam=2.0, **more)
    panel.options.controls["lam"].setText("much")
    panel.button.click()
    assert panel.status.text() == "lam must be a number: got 'much'" and panel.worker is None
    panel.options.controls["lam"].setText("-1")
    press_segment(application, panel)
    assert panel.status.text().startswith("lam must be ")


def test_a_click_shows_what_belongs_with_a_place(application, panel, viewer, cells):
    click(panel, (0, 0))  # nothing is segmented yet
    press_segment(application, panel)
    click(panel, (2.0, 5 + 2 * 24, 7 + 3 * 16))  # the axis of draws comes first
    layer = viewer.layers["cells together"]
    np.testing.assert_array_equal(layer.data, panel.result.together((24, 16))[0])
    assert viewer.layers.selection == {cells} and "with the clicked one" in panel.status.text()
    layer.visible = False
    click(panel, (5 + 2 * 24, 7 + 3 * 48))
    np.testing.assert_array_equal(layer.data, panel.result.together((24, 48))[0])
    assert layer.visible


def test_what_is_no_click_shows_nothing(application, panel, viewer, cells):
    press_segment(application, panel)
    place = (5 + 2 * 24, 7 + 3 * 16)
    click(panel, (-50, 0))
    click(panel, place, moved=20)
    click(panel, place, button=2)
    click(panel, place, modifiers=("Alt",))
    viewer.layers.selection.active = labels = viewer.layers["cells labels"]
    labels.mode = "paint"
    click(panel, place)
    labels.mode = "pan_zoom"
    panel.click.setChecked(False)
    click(panel, place)
    panel.click.setChecked(True)
    panel.hide()
    click(panel, place)
    panel.show()
    assert "cells together" not in viewer.layers
    click(panel, place)
    assert "cells together" in viewer.layers


def test_cancel_shows_what_is_finished(application, panel, viewer, cells, endless):
    panel.button.click()
    assert panel.button.text() == "Cancel"
    until(application, lambda: panel.bar.value() > 0)
    assert panel.status.text().startswith("Sampling: ")
    press_segment(application, panel)
    assert panel.result.segmentation.interrupted and "Cancelled after" in panel.status.text()
    assert "cells labels" in viewer.layers and panel.button.isEnabled() and not panel.bar.isVisible()
    click(panel, (5, 7))
    assert "There are no draws yet" in panel.status.text()  # half of these sweeps would be burn-in


def test_where_napari_is_closed_the_thread_ends(application, panel, viewer, cells, endless):
    from napari.qt.threading import WorkerBase

    panel.button.click()
    until(application, lambda: panel.bar.value() > 0)
    WorkerBase.await_workers()
    until(application, lambda: panel.worker is None)
    assert len(viewer.layers) == 1


def test_what_cannot_be_segmented_gets_a_line(application, panel, viewer):
    panel.button.click()
    assert panel.status.text() == "the selected layer must be an image: got 'no layer'"
    viewer.add_labels(squares(), name="mine")
    panel.button.click()
    assert panel.status.text() == "the selected layer must be an image: got 'mine, of the kind labels'"
    viewer.add_points(np.zeros((1, 2)))
    panel.button.click()
    assert "of the kind points" in panel.status.text()
    viewer.add_image(np.full((9, 9), np.nan), name="holes", contrast_limits=(0, 1))
    press_segment(application, panel)
    assert "must hold finite numbers" in panel.status.text() and "bug" not in panel.status.text()
    assert panel.worker is None and panel.button.isEnabled() and len(viewer.layers) == 3


def test_color_channels_and_volumes_are_read_rightly(application, panel, viewer, monkeypatch):
    asked, found = [], ss.segment(squares(), sweeps=2, chains=1, rng=0)

    def segment(image, preset, channel_axis, **options):
        asked.append(ss.as_picture(image, channel_axis=channel_axis))
        return found

    monkeypatch.setattr(results, "segment", segment)
    viewer.add_image(np.stack([squares()] * 3, axis=-1))
    press_segment(application, panel)
    viewer.layers.selection = {viewer.add_image(squares()), viewer.add_image(squares())}
    press_segment(application, panel)
    viewer.layers.selection.active = viewer.add_image(np.stack([squares()] * 5))
    panel.channels.setCurrentText("axis 0")
    press_segment(application, panel)
    assert [(picture.shape, picture.n_channels) for picture in asked] == [((48, 64), n) for n in (3, 2, 5)]


def test_a_closed_panel_stops_working(application, viewer, cells, endless):
    from qtpy.QtWidgets import QVBoxLayout, QWidget

    from spinseg.napari_plugin.widget import SegmentationPanel

    window, panel = QWidget(), SegmentationPanel(viewer)
    QVBoxLayout(window).addWidget(panel)
    window.show()
    panel.button.click()
    until(application, lambda: panel.bar.value() > 0)
    panel.setParent(None)
    until(application, lambda: panel.worker is None)
    assert len(viewer.layers) == 1 and not is_listening(panel)


def test_napari_finds_the_plugin_and_opens_samples_and_saved_results(application, viewer, tmp_path):
    from napari.plugins import _initialize_plugins
    from npe2 import PluginManager, PluginManifest

    manifest = PluginManifest.from_distribution("spinseg")
    manifest.validate_imports()
    manager = PluginManager()
    manager.register(manifest)
    manager.activate("spinseg")
    assert {sample.key for sample in manifest.contributions.sample_data} == set(PICTURES)
    for name in PICTURES:
        assert manager.commands.execute(f"spinseg.{name}")[0][2] == "image"
    found = ss.segment(squares(), sweeps=4, chains=1, rng=0)
    found.save(tmp_path / "saved")
    for path in (tmp_path / "saved", tmp_path / "saved" / "result.json"):
        (reader,) = manager.iter_compatible_readers([str(path)])
        assert reader.command == "spinseg.read"
    (widget,) = manifest.contributions.widgets
    assert manager.commands.get(widget.command).__name__ == "SegmentationPanel"
    _initialize_plugins()
    (sample,) = viewer.open_sample("spinseg", "cat")
    assert sample.rgb and sample.metadata["credit"] == PICTURES["cat"].credit
    labels, boundaries = viewer.open(tmp_path / "saved" / "result.json", plugin=None)  # no other reads it
    assert (labels.name, boundaries.name) == ("saved labels", "saved boundaries")
    np.testing.assert_array_equal(labels.data, found.labels)
    assert labels.features["area"].sum() == squares().size
    assert len(viewer.open(tmp_path / "saved", plugin="spinseg")) == 2
