"""Results on disk: a CSV file with one row for each image and method, appended as soon as it is computed."""

import csv
import io
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

from spinseg._run.atomic import FilePath, atomic_write, print_warning, printable
from spinseg._run.provenance import Provenance, is_done
from spinseg._validation import invalid
from studies.evaluation.boundaries import THRESHOLDS, BoundaryCounts
from studies.evaluation.calibration import N_BINS, Reliability
from studies.evaluation.metrics import Scores
from studies.evaluation.objects import ObjectScores

Key = tuple[str, str]  # image and method


class Row(NamedTuple):
    """The scores of one method on one image. Where it failed, `error` says why in one line and there are no scores.

    `content` is the hash of the files that were read, `Example.content`. `boundaries` and `reliability` are sums over
    the pixels and edges of the image, for scores over all images.
    """

    image: str
    method: str
    scores: Scores | None
    clusters: int
    regions: int
    seconds: float
    dataset: str
    seed: int
    version: str
    settings: str
    content: str = ""
    error: str = ""
    graded: float | None = None
    energy_distance: float | None = None
    boundaries: BoundaryCounts | None = None
    reliability: Reliability | None = None
    group: str = ""
    objects: ObjectScores | None = None

    @property
    def key(self) -> Key:
        """The image and the method, which no other row has."""
        return self.image, self.method

    @property
    def provenance(self) -> Provenance:
        """What the row was computed from."""
        inputs = inputs_of(self.image, self.content)
        return Provenance(inputs, self.version, self.seed, {"dataset": self.dataset, "settings": self.settings})


def inputs_of(image: str, content: str) -> dict[str, dict[str, str]]:
    """The inputs of a row, as `Provenance` has them."""
    return {f"{image} or its ground truth": {"source": image, "content": content}}


# In the order of the file.
COLUMNS = (
    *(
        "image",
        "group",
        "method",
        *Scores._fields,
        *ObjectScores._fields,
        "brier",
        "log_loss",
        "graded",
        "energy_distance",
    ),
    *("clusters", "regions", "seconds", "dataset", "seed", "version", "settings", "content", "error"),
    *("boundaries", "reliability"),
)


class StoredRow(Protocol):
    """A row of a `ResultsFile`."""

    @property
    def key(self) -> Key:
        """The image and the method, which no other row has."""

    @property
    def provenance(self) -> Provenance:
        """What the row was computed from."""


R = TypeVar("R", bound=StoredRow)


class ResultsFile(ABC, Generic[R]):
    """Rows in a CSV file, which grows by one whole line at a time, so that an interrupted run can be resumed.

    A last line that a kill or a power cut left incomplete is dropped with a warning. `provenance_of(image, method)` is
    what the rows must have been computed from: a file with other rows is refused, so that results never mix. If it is
    None, any rows are accepted.
    """

    columns: ClassVar[tuple[str, ...]]

    def __init__(self, path: FilePath, provenance_of: Callable[[str, str], Provenance] | None = None) -> None:
        self.path = Path(path)
        self.rows: dict[Key, R] = {}
        if self.path.is_dir() or not self.path.parent.is_dir():
            invalid("out", "be a file in a folder that is there", str(self.path))
        data = self.path.read_bytes() if self.path.exists() else b""
        if not data:
            self._write(table_bytes(self.columns, []))
            return
        complete = complete_lines(data)
        for row in self.parsed(complete):
            if provenance_of is not None:
                is_done(row.provenance, self.wanted(row, provenance_of(*row.key)), path, "name another file")
            self.rows[row.key] = row
        if complete != data:
            print_warning(f"the last line of {printable(path)} was cut short, and is dropped")
            self._write(complete)

    @abstractmethod
    def from_cells(self, cells: dict[str, str]) -> R:
        """The row of a line; ValueError or KeyError if its cells are of other kinds."""

    @abstractmethod
    def to_cells(self, row: R) -> list[object]:
        """The inverse of `from_cells`, in the order of `columns`."""

    def wanted(self, row: R, provenance: Provenance) -> Provenance:
        """The provenance that a stored row must have, given that of a new one."""
        return provenance

    def append(self, *rows: R) -> None:
        """Add rows, or replace those of the same keys, and flush them to the disk."""
        self.rows |= {row.key: row for row in rows}
        with open(self.path, "ab") as file:
            file.write(b"".join(_line(self.to_cells(row)) for row in rows))
            file.flush()
            os.fsync(file.fileno())

    def finish(self, order: Iterable[Key]) -> None:
        """Write the rows in the given order of keys; other rows follow."""
        ordered = [key for key in order if key in self.rows]
        self.rows = {key: self.rows[key] for key in dict.fromkeys([*ordered, *self.rows])}
        self._write(table_bytes(self.columns, map(self.to_cells, self.rows.values())))

    def parsed(self, data: bytes) -> list[R]:
        """The rows in the content of the file, in its order; of several with the same key the last one."""
        lines = csv.reader(io.StringIO(data.decode("utf-8", errors="surrogateescape"), newline=""))
        header = next(lines, [])
        if tuple(header) != self.columns:
            rule = "be a results file of this version, with the columns " + ",".join(self.columns)
            invalid(str(self.path), rule, ",".join(header))
        rows = {}
        for number, cells in enumerate(lines, start=2):
            try:
                row = self.from_cells(dict(zip(self.columns, cells, strict=True)))
            except (ValueError, KeyError):
                rule = f"have {len(self.columns)} cells of the right kinds in line {number}"
                invalid(str(self.path), rule, ",".join(cells))
            rows[row.key] = row
        return list(rows.values())

    def _write(self, content: bytes) -> None:
        atomic_write(self.path, lambda file: file.write(content))


class ComparisonFile(ResultsFile[Row]):
    """The rows of a comparison of methods."""

    columns = COLUMNS

    def wanted(self, row: Row, provenance: Provenance) -> Provenance:
        """Of a row with an error the files may have changed: it is computed again, perhaps because of a repair."""
        return provenance._replace(inputs={}) if row.error else provenance

    def from_cells(self, cells: dict[str, str]) -> Row:
        """The row of a line."""
        texts: dict[str, Any] = {
            name: cells[name]
            for name in ("image", "group", "method", "dataset", "version", "settings", "content", "error")
        }
        return Row(
            **texts,
            scores=None if cells["error"] else Scores(*(float(cells[name]) for name in Scores._fields)),
            objects=ObjectScores(*(float(cells[name]) for name in ObjectScores._fields)) if cells["f_50"] else None,
            clusters=int(cells["clusters"]),
            regions=int(cells["regions"]),
            seconds=float(cells["seconds"]),
            seed=int(cells["seed"]),
            graded=_number(cells["graded"]),
            energy_distance=_number(cells["energy_distance"]),
            boundaries=_counts(cells["boundaries"]),
            reliability=_reliability(cells["reliability"]),
        )

    def to_cells(self, row: Row) -> list[object]:
        """The cells of a row."""
        scores = [""] * len(Scores._fields) if row.scores is None else map(repr, row.scores)
        objects = [""] * len(ObjectScores._fields) if row.objects is None else map(repr, row.objects)
        predicted = row.reliability
        probable = [
            predicted.brier if predicted else None,
            predicted.log_loss if predicted else None,
            row.graded,
            row.energy_distance,
        ]
        numbers = ["" if number is None else repr(number) for number in probable]
        run = [f"{row.seconds:.3f}", row.dataset, row.seed, row.version, row.settings, row.content, row.error]
        sums = [_sums(row.boundaries), _sums(row.reliability)]
        return [row.image, row.group, row.method, *scores, *objects, *numbers, row.clusters, row.regions, *run, *sums]


def read_rows(path: FilePath) -> list[Row]:
    """The rows of the file of a comparison, in its order."""
    return list(ComparisonFile(path).rows.values())


def complete_lines(data: bytes) -> bytes:
    """The content of a file that was written line by line, without an incomplete last line.

    A kill leaves a line without its end; a power cut may leave zero bytes in its place.

    Examples
    --------
    >>> complete_lines(b"one, 1\\ntwo, 2\\nthr")
    b'one, 1\\ntwo, 2\\n'
    """
    lines = data[: data.rfind(b"\n") + 1]
    last = lines.rfind(b"\n", 0, -1) + 1
    return lines[:last] if b"\0" in lines[last:] else lines


def table_bytes(header: Iterable[object], rows: Iterable[Iterable[object]]) -> bytes:
    """A table as CSV."""
    return b"".join(map(_line, [header, *rows]))


def _number(text: str) -> float | None:
    return float(text) if text else None


def _counts(text: str) -> BoundaryCounts | None:
    """The inverse of `_sums`."""
    if not text:
        return None
    found, correct, recalled, true = ([int(number) for number in part.split()] for part in _parts(text, 4))
    if {len(found), len(correct), len(recalled)} != {THRESHOLDS.size} or len(true) != 1:
        raise ValueError(text)
    return BoundaryCounts(tuple(found), tuple(correct), tuple(recalled), true[0])


def _reliability(text: str) -> Reliability | None:
    """The inverse of `_sums`."""
    if not text:
        return None
    weight, predicted, seen, squares, logs = ([float(number) for number in part.split()] for part in _parts(text, 5))
    if {len(weight), len(predicted), len(seen)} != {N_BINS} or len(squares) != 1 or len(logs) != 1:
        raise ValueError(text)
    return Reliability(tuple(weight), tuple(predicted), tuple(seen), squares[0], logs[0])


def _parts(text: str, n_parts: int) -> list[str]:
    parts = text.split(";")
    if len(parts) != n_parts:
        raise ValueError(text)
    return parts


def _sums(sums: BoundaryCounts | Reliability | None) -> str:
    """The fields with semicolons between them, and the numbers of each with spaces."""
    fields: tuple[Any, ...] = sums or ()
    return "; ".join(" ".join(map(repr, field)) if isinstance(field, tuple) else repr(field) for field in fields)


def _line(cells: Iterable[object]) -> bytes:
    buffer = io.StringIO(newline="")
    csv.writer(buffer, lineterminator="\n").writerow(cells)
    return buffer.getvalue().encode(errors="surrogateescape")
