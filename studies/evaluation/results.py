"""Results on disk: a CSV file with one row for each image and method, appended as soon as it is computed."""

import csv
import io
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from spinseg._run.atomic import append, atomic_write, complete_lines, print_warning, printable
from spinseg._run.provenance import Provenance
from spinseg._validation import invalid
from studies.evaluation.boundaries import THRESHOLDS, BoundaryCounts
from studies.evaluation.calibration import N_BINS, Reliability
from studies.evaluation.metrics import Scores

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
    *("image", "method", *Scores._fields, "brier", "log_loss", "graded", "energy_distance"),
    *("clusters", "regions", "seconds", "dataset", "seed", "version", "settings", "content", "error"),
    *("boundaries", "reliability"),
)


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
            wanted = row.provenance if provenance_of is None else provenance_of(*row.key)
            if row.error:  # it is computed again, perhaps because its files were repaired
                wanted = wanted._replace(inputs={})
            if differences := row.provenance.differences(wanted):
                rule = f"have the rows of {row.method} from this run (name another file for other results)"
                invalid(str(self.path), rule, ", ".join(differences))
            self.rows[row.key] = row
        if complete != data:
            print_warning(f"the last line of {printable(self.path)} was cut short, and is dropped")
            atomic_write(self.path, lambda file: file.write(complete))


def read_rows(path: str | os.PathLike[str], data: bytes | None = None) -> list[Row]:
    """The rows of a results file in its order; of several with the same key the last one."""
    text = (Path(path).read_bytes() if data is None else data).decode("utf-8", errors="surrogateescape")
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
    scores = None if cells["error"] else Scores(*(float(cells[name]) for name in Scores._fields))
    texts: dict[str, Any] = {
        name: cells[name] for name in ("image", "method", "dataset", "version", "settings", "content", "error")
    }
    return Row(
        **texts,
        scores=scores,
        clusters=int(cells["clusters"]),
        regions=int(cells["regions"]),
        seconds=float(cells["seconds"]),
        seed=int(cells["seed"]),
        graded=_number(cells["graded"]),
        energy_distance=_number(cells["energy_distance"]),
        boundaries=_counts(cells["boundaries"]),
        reliability=_reliability(cells["reliability"]),
    )


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
    weight, told, seen, squares, logs = ([float(number) for number in part.split()] for part in _parts(text, 5))
    if {len(weight), len(told), len(seen)} != {N_BINS} or len(squares) != 1 or len(logs) != 1:
        raise ValueError(text)
    return Reliability(tuple(weight), tuple(told), tuple(seen), squares[0], logs[0])


def _parts(text: str, n_parts: int) -> list[str]:
    parts = text.split(";")
    if len(parts) != n_parts:
        raise ValueError(text)
    return parts


def _sums(sums: BoundaryCounts | Reliability | None) -> str:
    """The fields with semicolons between them, and the numbers of each with spaces."""
    fields: tuple[Any, ...] = sums or ()
    return "; ".join(" ".join(map(repr, field)) if isinstance(field, tuple) else repr(field) for field in fields)


def _cells(row: Row) -> list[object]:
    scores = [""] * len(Scores._fields) if row.scores is None else map(repr, row.scores)
    told = row.reliability
    of_probabilities = [told.brier if told else None, told.log_loss if told else None, row.graded, row.energy_distance]
    numbers = ["" if number is None else repr(number) for number in of_probabilities]
    run = [f"{row.seconds:.3f}", row.dataset, row.seed, row.version, row.settings, row.content, row.error]
    sums = [_sums(row.boundaries), _sums(row.reliability)]
    return [row.image, row.method, *scores, *numbers, row.clusters, row.regions, *run, *sums]


def _line(cells: Iterable[object]) -> bytes:
    buffer = io.StringIO(newline="")
    csv.writer(buffer, lineterminator="\n").writerow(cells)
    return buffer.getvalue().encode(errors="surrogateescape")
