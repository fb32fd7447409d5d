"""Few cases that hold every pair of values of any two factors: most faults need two factors to show, seldom three."""

from itertools import combinations

import numpy as np

CANDIDATES = 30  # rows that are tried for each one taken


def pairwise(factors: dict[str, list]) -> list[dict]:
    """Rows with a value of each factor, such that any two factors take each pair of their values in some row."""
    names, rng, rows = list(factors), np.random.default_rng(0), []
    left = {
        (a, i, b, j) for a, b in combinations(names, 2) for i in range(len(factors[a])) for j in range(len(factors[b]))
    }
    while left:
        row = max((candidate(names, factors, left, rng) for _ in range(CANDIDATES)), key=lambda row: gain(row, left))
        left -= pairs(row)
        rows.append({name: factors[name][row[name]] for name in names})
    return rows


def candidate(names, factors, left, rng):
    """A row that starts with a pair that is left, and takes for each other factor the value that gains most."""
    a, i, b, j = sorted(left)[rng.integers(len(left))]
    row = {a: i, b: j}
    for name in rng.permutation([name for name in names if name not in row]):
        values = rng.permutation(len(factors[name]))
        row[name] = int(max(values, key=lambda value: gain({**row, name: int(value)}, left)))
    return {name: row[name] for name in names}


def pairs(row):
    """All pairs of a row, in either order of the factors."""
    return {(a, row[a], b, row[b]) for a in row for b in row if a != b}


def gain(row, left):
    """How many pairs that are left a row holds."""
    return len(pairs(row) & left)
