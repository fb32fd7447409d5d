"""The thread in which an image is segmented."""

from collections.abc import Callable

from napari.qt.threading import WorkerBase, WorkerBaseSignals
from qtpy.QtCore import Signal

from spinseg._run.progress import Progress, Report
from spinseg.napari_plugin.results import LayerResult


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
        if self._cancelled:
            raise KeyboardInterrupt
        self.progressed.emit(progress)

    def cancel(self) -> None:
        """Stop sampling soon; `returned` tells what the finished sweeps give."""
        self._cancelled = True

    def quit(self) -> None:
        """Stop sampling soon, and tell nothing: napari calls this when it is closed."""
        self.cancel()
        super().quit()
