"""Results on disk: a CSV file with one row for each image and method, appended as soon as it is computed."""

import csv
import io
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from spinseg._validation import invalid
from spinseg.evaluation.metrics import Scores
from spinseg.parallel.atomic import append, atomic_write, complete_lines, print_warning, printable
from spinseg.parallel.provenance import Provenance

Key = tuple[str, str]  # image and method


class Row(NamedTuple):
    """The scores of one method on one image. Where it failed, `error` says why in one line and there are no scores."""

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
    error: str = ""

    @property
    def key(self) -> Key:
        """The image and the method, which no other row has."""
        return self.image, self.method

    @property
    def provenance(self) -> Provenance:
        """What the row was computed from."""
        return Provenance({}, self.version, self.seed, {"dataset": self.dataset, "settings": self.settings})


# In the order of the file.
COLUMNS = ("image", "method", *Scores._fields, *Row._fields[3:])


class ResultsFile:
    """The rows of one comparison in a CSV file, which grows by one whole line at a time.

    A last line that a kill or a power cut left incomplete is dropped with a warning. `provenance_of(image, method)` is
    what the rows must have been computed from: a file with other rows is refused, so that results never mix. Where it
    is None, any rows will do.
    """

    def __init__(
        self, path: str | os.PathLike[str], provenance_of: Callable[[str, str], Provenance] | None = None
    ) -> None:
        self.path = Path(path)
        self.rows: dict[Key, Row] = {}
        if self.path.is_dir() or not self.path.parent.is_dir():
            invalid("out", "be a file in a folder that is there", str(self.path))
        if self.path.exists() and self.path.stat().st_size:
            self._read(provenance_of)
        else:
            atomic_write(self.path, lambda file: file.write(_line(COLUMNS)))

    def append(self, row: Row) -> None:
        """Add a row, or replace the one of the same image and method."""
        self.rows[row.key] = row
        append(self.path, _line(_cells(row)))

    def finish(self, order: Iterable[Key]) -> None:
        """Write the rows in the given order of keys; other rows follow."""
        ordered = [key for key in order if key in self.rows]
        self.rows = {key: self.rows[key] for key in dict.fromkeys([*ordered, *self.rows])}
        lines = [_line(COLUMNS), *(_line(_cells(row)) for row in self.rows.values())]
        atomic_write(self.path, lambda file: file.write(b"".join(lines)))

    def _read(self, provenance_of: Callable[[str, str], Provenance] | None) -> None:
        data = self.path.read_bytes()
        complete = complete_lines(data)
        for row in read_rows(self.path, complete):
            if provenance_of and (differences := row.provenance.differences(provenance_of(*row.key))):
                rule = f"have the rows of {row.method} from this run (name another file for other results)"
                invalid(str(self.path), rule, ", ".join(differences))
            self.rows[row.key] = row
        if complete != data:
            print_warning(f"the last line of {printable(self.path)} was cut short, and is dropped")
            atomic_write(self.path, lambda file: file.write(complete))


def read_rows(path: str | os.PathLike[str], data: bytes | None = None) -> list[Row]:
    """The rows of a results file in its order; of several with the same key the last one."""
    text = (Path(path).read_bytes() if data is None else data).decode("utf-8", errors="replace")
    lines = csv.reader(io.StringIO(text, newline=""))
    header = next(lines, [])
    if tuple(header) != COLUMNS:
        invalid(str(path), "be a results file of this version, with the columns " + ",".join(COLUMNS), ",".join(header))
    rows = {}
    for number, cells in enumerate(lines, start=2):
        try:
            row = _row(dict(zip(COLUMNS, cells, strict=True)))
        except (ValueError, KeyError):
            invalid(str(path), f"have {len(COLUMNS)} cells of the right kinds in line {number}", ",".join(cells))
        rows[row.key] = row
    return list(rows.values())


def table_bytes(header: Iterable[object], rows: Iterable[Iterable[object]]) -> bytes:
    """A table as CSV."""
    return b"".join(map(_line, [header, *rows]))


def _row(cells: dict[str, str]) -> Row:
    scores = None if cells["error"] else Scores(*(float(cells.pop(name)) for name in Scores._fields))
    numbers: dict[str, Any] = {name: int(cells[name]) for name in ("clusters", "regions", "seed")}
    texts: dict[str, Any] = {
        name: cells[name] for name in ("image", "method", "dataset", "version", "settings", "error")
    }
    return Row(**texts, **numbers, scores=scores, seconds=float(cells["seconds"]))


def _cells(row: Row) -> list[object]:
    scores = [""] * len(Scores._fields) if row.scores is None else map(repr, row.scores)
    return [row.image, row.method, *scores, row.clusters, row.regions, f"{row.seconds:.3f}", *row[6:]]


def _line(cells: Iterable[object]) -> bytes:
    buffer = io.StringIO(newline="")
    csv.writer(buffer, lineterminator="\n").writerow(cells)
    return buffer.getvalue().encode()
