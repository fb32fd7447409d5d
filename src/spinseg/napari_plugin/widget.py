"""The panel: segment the selected image, choose the detail, and click a place to see what belongs with it."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from napari.qt.threading import GeneratorWorker, WorkerBase, WorkerBaseSignals
from qtpy.QtCore import QEvent, Qt, Signal
from qtpy.QtWidgets import (
    QCheckBox,
    QComboBox,
    QFormLayout,
    QLabel,
    QLineEdit,
    QProgressBar,
    QPushButton,
    QSlider,
    QSpinBox,
    QWidget,
)

from spinseg._errors import error_line, is_expected
from spinseg._run.progress import Progress, Report
from spinseg._validation import InvalidInput, counted, invalid
from spinseg.image.layout import ChannelAxis
from spinseg.napari_plugin.layers import LayerData, image_of
from spinseg.napari_plugin.results import DETAILS, LayerResult, segment_image
from spinseg.segmentation.presets.photo import Photo
from spinseg.segmentation.presets.preset import Preset

if TYPE_CHECKING:
    import napari

CHANNELS: dict[str, ChannelAxis] = {"automatic": "auto", "none": None} | {f"axis {axis}": axis for axis in range(4)}
LARGEST_SEED = 2**31 - 1
CLICK_PIXELS = 4  # that the pointer may move between press and release
USERS_OWN = ("name", "opacity", "visible", "blending", "colormap", "contrast_limits")  # kept where a layer is updated
TOGETHER = "How probably each place is in one region with the clicked one: from 0, black, to 1, nearly white."
NO_DRAWS = "There are no draws yet: it was cancelled too early. Segment again."


class _Signals(WorkerBaseSignals):
    """Those of every worker, and how far sampling has come."""

    progressed = Signal(object)


class SegmentationWorker(WorkerBase):
    """Calls a function in a thread, with a `Report` that interrupts it after `cancel`."""

    def __init__(self, function: Callable[[Report], LayerResult]) -> None:
        super().__init__(SignalsClass=_Signals)
        self._function = function
        self._cancelled = False

    def work(self) -> LayerResult:
        """Call the function."""
        return self._function(self._report)

    def _report(self, progress: Progress) -> None:
        if self._cancelled and progress.stage.startswith("sampling"):  # before it there is nothing to show
            raise KeyboardInterrupt
        self.progressed.emit(progress)

    def cancel(self) -> None:
        """Stop sampling soon; `returned` tells what the finished sweeps give."""
        self._cancelled = True

    def quit(self) -> None:
        """Stop sampling soon, and tell nothing: napari calls this when it is closed."""
        self.cancel()
        super().quit()


class PresetOptions(QWidget):
    """The numbers and switches of a preset, each with its help; the detail has a slider of its own."""

    def __init__(self, preset: str) -> None:
        super().__init__()
        form, kind = QFormLayout(self), Preset.known[preset]
        self.usual, self.controls = kind(), dict[str, QCheckBox | QLineEdit]()
        for name, option in kind.options().items():
            if name == "detail" or not (option.slider or option.kind is bool):
                continue
            value, control = getattr(self.usual, name), QCheckBox() if option.kind is bool else QLineEdit()
            if isinstance(control, QLineEdit):
                control.setPlaceholderText("automatic" if value is None else f"{value:g}")
            else:
                control.setChecked(value)
            control.setToolTip(option.help)
            self.controls[name] = control
            form.addRow(name.replace("_", " ").capitalize(), control)

    def changed(self) -> dict[str, Any]:
        """The options that were given."""
        found: dict[str, Any] = {}
        for name, control in self.controls.items():
            if isinstance(control, QCheckBox):
                found[name] = control.isChecked()
            elif text := control.text().strip():
                try:
                    found[name] = self.usual.options()[name].kind(text)
                except ValueError:
                    invalid(name, "be a number", text)
        return {name: value for name, value in found.items() if value != getattr(self.usual, name)}


class SegmentationPanel(QWidget):
    """Segments the selected image layers of a viewer, and shows the result in layers over them."""

    def __init__(self, viewer: "napari.viewer.Viewer") -> None:
        super().__init__()
        self.viewer = viewer
        self.worker: SegmentationWorker | None = None
        self.fetcher: Any = None  # of other details
        self.sources: list[Any] = []  # the layers that are segmented
        self.result: LayerResult | None = None
        self.shown: dict[str, Any] = {}  # the layers that show the result
        self._make_controls()

    def _make_controls(self) -> None:
        self.preset, self.channels, self.seed = QComboBox(), QComboBox(), QSpinBox()
        for i, (name, kind) in enumerate(Preset.known.items()):
            self.preset.addItem(name)
            self.preset.setItemData(i, kind.about, Qt.ItemDataRole.ToolTipRole)
        self.preset.setCurrentText(Photo.name)
        self.preset.currentTextChanged.connect(self._choose_preset)
        self.options = PresetOptions(Photo.name)
        self.channels.addItems(list(CHANNELS))
        self.channels.setToolTip("Which axis of the layer holds channels. Several selected layers are channels.")
        self.seed.setRange(0, LARGEST_SEED)
        self.button, self.bar, self.status = QPushButton("Segment"), QProgressBar(), QLabel()
        self.button.clicked.connect(self._start_or_cancel)
        self.bar.hide()
        self.status.setWordWrap(True)
        self.status.setText("Select an image layer, and press Segment.")
        self.detail, self.detail_name = QSlider(Qt.Orientation.Horizontal), QLabel()
        self.detail.setRange(0, len(DETAILS) - 1)
        self.detail.setToolTip(Photo.options()["detail"].help)
        self.detail.valueChanged.connect(self._choose_detail)
        self.detail.setValue(DETAILS.index(Photo().detail))
        self.click = QCheckBox("A click shows what belongs together")
        self.click.setChecked(True)
        self.form = form = QFormLayout(self)
        for name, control in (("Preset", self.preset), ("Channels", self.channels), ("Seed", self.seed)):
            form.addRow(name, control)
        for row in (self.options, self.button, self.bar):
            form.addRow(row)
        form.addRow(self.detail_name, self.detail)
        form.addRow(self.click)
        form.addRow(self.status)

    def _start_or_cancel(self) -> None:
        if self.worker is None:
            self.start()
        else:  # which then returns what the finished sweeps give
            self.worker.cancel()
            self.button.setEnabled(False)
            self.status.setText("Cancelling ...")

    def start(self) -> None:
        """Segment the selected layers in a thread; where they cannot be segmented, a line says why."""
        selected = [layer for layer in self.viewer.layers if layer in self.viewer.layers.selection]
        try:
            image = image_of([layer.as_layer_data_tuple() for layer in selected], CHANNELS[self.channels.currentText()])
            options = self.options.changed()
        except InvalidInput as error:
            self.status.setText(error_line(error))
            return
        if selected != self.sources:
            self.sources, self.result, self.shown = selected, None, {}
        preset = self.preset.currentText()
        if self.detail.isEnabled():
            options["detail"] = DETAILS[self.detail.value()]
        self.worker = SegmentationWorker(partial(segment_image, image, preset, options, self.seed.value()))
        self.worker.progressed.connect(self._tell_progress)
        self.worker.returned.connect(self._show)
        self.worker.errored.connect(self._tell_error)
        self.worker.finished.connect(self._finish)
        self.button.setText("Cancel")
        self.bar.setRange(0, 0)  # without an end, until sampling begins
        self.bar.show()
        self.status.setText(f"Preparing {image.name} ...")
        self.worker.start()

    def _tell_progress(self, progress: Progress) -> None:
        if not self.button.isEnabled():
            return
        if progress.n_clusters == 0:  # before the first sweep
            self.status.setText(f"{progress.stage.capitalize()} ...")
            return
        self.bar.setRange(0, progress.total)
        self.bar.setValue(progress.done)
        self.status.setText(f"Sampling: {counted(progress.n_clusters, 'cluster')} now ...")

    def _tell_error(self, error: Exception) -> None:
        self.status.setText(error_line(error))
        if not is_expected(error):
            raise error  # napari then shows where

    def _finish(self) -> None:
        self.worker = None
        self.button.setText("Segment")
        self.button.setEnabled(True)
        self.bar.hide()

    def _show(self, result: LayerResult) -> None:
        """Show a new result, in the layers of the one before if it is of the same layers."""
        if self.fetcher is not None:
            self.fetcher.quit()
        self.result, made = result, result.layers()
        for name in set(self.shown) - set(made):
            self._remove(name)
        for name, layer_data in made.items():
            self._put(name, layer_data)
        self.status.setText(result.in_words(result.detail))
        if result.has_details:
            self.fetcher = GeneratorWorker(result.fetch)
            self.fetcher.yielded.connect(self._fetched)
            self.fetcher.start()
            self._choose_detail(self.detail.value())  # it may have been moved meanwhile

    def _choose_detail(self, position: int) -> None:
        self.detail_name.setText(f"Detail {DETAILS[position]:.2f}")
        if self.result is not None and self.result.has_details and self.result.detail != DETAILS[position]:
            self.result.detail = DETAILS[position]
            self._show_detail()

    def _fetched(self, detail: float) -> None:
        if self.result is not None and detail == self.result.detail:
            self._show_detail()

    def _show_detail(self) -> None:
        """Show the labels at the chosen detail, or say that they are on their way."""
        result = self.result
        if result is not None and result.detail in result.views:
            self._put("labels", result.labels(result.detail))
            self.status.setText(result.in_words(result.detail))
        elif result is not None:
            self.status.setText(f"Estimating the regions at detail {result.detail:g} ...")

    def _choose_preset(self, preset: str) -> None:
        """Offer the options of another preset."""
        self.detail.setEnabled("detail" in Preset.known[preset].options())
        options = PresetOptions(preset)
        self.form.replaceWidget(self.options, options)
        self.options.deleteLater()
        self.options = options

    def show_together(self, position: Sequence[float]) -> None:
        """Show how probably each place belongs with the one at a position in the world."""
        if self.result is None:
            return
        if not self.result.has_draws:
            self.status.setText(NO_DRAWS)
            return
        layer_data = self.result.together(self.shown["labels"].world_to_data(position))
        if layer_data is not None:
            self._put("together", layer_data)
            self.shown["together"].visible = True
            self.status.setText(TOGETHER)

    def _put(self, name: str, layer_data: LayerData) -> None:
        """Update the layer that shows this, or add it; the selection stays."""
        data, attributes, kind = layer_data
        layer = self.shown.get(name)
        if layer is not None and layer in self.viewer.layers and layer.data.ndim == data.ndim:
            layer.data = data
            for attribute in set(attributes).difference(USERS_OWN):
                setattr(layer, attribute, attributes[attribute])
            return
        self._remove(name)
        selected = set(self.viewer.layers.selection)
        self.shown[name] = getattr(self.viewer, f"add_{kind}")(data, **attributes)
        self.viewer.layers.selection.clear()
        self.viewer.layers.selection.update(selected)

    def _remove(self, name: str) -> None:
        """Remove the layer that shows this, if it is there."""
        layer = self.shown.pop(name, None)
        if layer is not None and layer in self.viewer.layers:
            self.viewer.layers.remove(layer)

    def _watch_click(self, viewer: Any, event: Any) -> Iterator[None]:
        """Called by napari when a button of the mouse is pressed, and continued until it is released."""
        pressed_at = np.array(event.pos)
        yield
        while event.type == "mouse_move":
            yield
        active = self.viewer.layers.selection.active
        is_moving_about = active is None or str(active.mode) == "pan_zoom"  # not painting, say
        is_still = np.abs(event.pos - pressed_at).max() <= CLICK_PIXELS
        is_click = event.button == 1 and not event.modifiers and is_still
        if self.click.isChecked() and is_click and is_moving_about and self.viewer.dims.ndisplay == 2:
            self.show_together(event.position)

    def showEvent(self, event: Any) -> None:
        """Listen to clicks while the panel is shown."""
        self.viewer.mouse_drag_callbacks.append(self._watch_click)
        super().showEvent(event)

    def hideEvent(self, event: Any) -> None:
        """Listen to clicks no more."""
        if self._watch_click in self.viewer.mouse_drag_callbacks:
            self.viewer.mouse_drag_callbacks.remove(self._watch_click)
        super().hideEvent(event)

    def changeEvent(self, event: Any) -> None:
        """Stop working where the panel was closed: napari then takes it out of its window."""
        if event.type() == QEvent.Type.ParentChange and self.parent() is None:
            for worker in (self.worker, self.fetcher):
                if worker is not None:
                    worker.quit()
        super().changeEvent(event)
