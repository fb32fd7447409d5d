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


def contingency_table(rows: NDArray[np.integer], columns: NDArray[np.integer]) -> ContingencyTable:
    """Return the table of two vectors of labels, each numbered from 0.

    Examples
    --------
    >>> table = contingency_table(np.array([0, 0, 0, 1]), np.array([0, 1, 1, 1]))
    >>> table.row.tolist(), table.column.tolist(), table.shared.tolist()
    ([0, 0, 1], [0, 1, 1], [1, 2, 1])
    """
    row_sizes, column_sizes = np.bincount(rows), np.bincount(columns)
    cell = rows.astype(np.int64) * column_sizes.size + columns
    if row_sizes.size * column_sizes.size <= 4 * cell.size + 1024:  # a dense table is faster while it is this small
        dense = np.bincount(cell)
        cells = np.flatnonzero(dense)
        shared = dense[cells]
    else:
        cells, shared = np.unique(cell, return_counts=True)
    row, column = np.divmod(cells, column_sizes.size)
    return ContingencyTable(row, column, shared, row_sizes, column_sizes)
