"""The contingency table of two partitions: how many items each pair of their clusters shares."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]


class ContingencyTable(NamedTuple):
    """The non-empty cells, ordered by row, then by column: two clusters and the number of items that they share.

    Shapes: row, column and shared (n_cells,); row_sizes and column_sizes have an entry for each cluster.
    """

    row: NDArray[np.intp]
    column: NDArray[np.intp]
    shared: Counts
    row_sizes: Counts
    column_sizes: Counts

    @property
    def cells(self) -> tuple[Counts, Counts, Counts]:
        """The items of each cell, of its row and of its column: n_ij, a_i and b_j."""
        return self.shared, self.row_sizes[self.row], self.column_sizes[self.column]


def contingency_table(
    rows: NDArray[np.integer], columns: NDArray[np.integer], weights: NDArray[np.integer] | None = None
) -> ContingencyTable:
    """Return the table of two vectors of labels, each numbered from 0; an item counts as often as its weight says."""
    row_sizes, column_sizes = _counts(rows, weights), _counts(columns, weights)
    cell = rows.astype(np.int64) * column_sizes.size + columns
    if row_sizes.size * column_sizes.size <= 4 * cell.size + 1024:  # a dense table is faster while it is this small
        dense = _counts(cell, weights)
        cells = np.flatnonzero(dense)
        shared = dense[cells]
    elif weights is None:
        cells, shared = np.unique(cell, return_counts=True)
    else:
        cells, place = np.unique(cell, return_inverse=True)
        shared = _counts(place, weights)
    row, column = np.divmod(cells, column_sizes.size)
    return ContingencyTable(row, column, shared, row_sizes, column_sizes)


def _counts(labels: NDArray[np.integer], weights: NDArray[np.integer] | None) -> Counts:
    """Return the sum of the weights of each label, exact below 2^53."""
    return np.bincount(labels) if weights is None else np.bincount(labels, weights).astype(np.int64)


def pair_counts(table: ContingencyTable) -> tuple[int, int, int, int]:
    """Return numbers of pairs of different items: all, together in both partitions, in the rows', and in the columns'.

    They are Python integers, because products of two of them exceed 2^63.
    """
    n = int(table.shared.sum())
    sizes = (table.shared, table.row_sizes, table.column_sizes)
    both, in_rows, in_columns = ((int(size @ size) - n) // 2 for size in sizes)
    return n * (n - 1) // 2, both, in_rows, in_columns


def rand_index_of(table: ContingencyTable) -> float:
    """Return the share of pairs of different items that are together in both partitions or apart in both.

    It is 1 for a single item.
    """
    pairs, both, in_rows, in_columns = pair_counts(table)
    return (pairs + 2 * both - in_rows - in_columns) / pairs if pairs else 1.0


def adjusted_rand_index_of(table: ContingencyTable) -> float:
    """Return the Rand index corrected for chance: 0 expected for random labels, 1 for equal partitions, at least -1/2.

    Two partitions of one cluster each are equal, and so are two partitions into single items.
    """
    pairs, both, in_rows, in_columns = pair_counts(table)
    # The numerator and the denominator are both multiplied by 2 C(n, 2), so that they are integers.
    numerator = 2 * (both * pairs - in_rows * in_columns)
    denominator = pairs * (in_rows + in_columns) - 2 * in_rows * in_columns
    return numerator / denominator if denominator else 1.0


def vi_of(table: ContingencyTable) -> float:
    """Return the variation of information in bits, which is exactly 0 for equal partitions.

    1/n sum n_ij (log2 a_i / n_ij + log2 b_j / n_ij), with n items, n_ij of them in a cell whose row has a_i and whose
    column has b_j.
    """
    n_ij, a_i, b_j = table.cells
    return float(np.sum(n_ij * (np.log2(a_i / n_ij) + np.log2(b_j / n_ij)))) / int(n_ij.sum())


def binder_of(table: ContingencyTable, cost_apart: float = 1.0, cost_together: float = 1.0) -> float:
    """Return Binder's loss per pair of items, of the rows' partition where the columns' is true.

    A pair that is together in the columns' partition alone costs `cost_apart`, one in the rows' alone `cost_together`.
    With both 1 it is one minus the Rand index.
    """
    pairs, both, in_rows, in_columns = pair_counts(table)
    return (cost_apart * (in_columns - both) + cost_together * (in_rows - both)) / max(pairs, 1)


def sums_of_clusters(values: NDArray[np.float64], labels: NDArray[np.integer]) -> NDArray[np.float64]:
    """Return the sums of the rows of `values`, (n_sites, n), over each cluster of labels 0..k-1, (k, n)."""
    sums = np.empty((int(labels.max()) + 1, values.shape[1]))
    for column in range(values.shape[1]):
        sums[:, column] = np.bincount(labels, values[:, column])
    return sums
