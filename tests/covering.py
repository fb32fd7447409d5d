"""Few cases that hold every pair of values of any two factors: most faults need two factors to show, seldom three."""

from itertools import combinations

import numpy as np

CANDIDATES = 10  # rows that are tried for each one taken


def pairwise(factors: dict[str, list]) -> list[dict]:
    """Rows with a value of each factor, such that any two factors take each pair of their values in some row."""
    names, rng, rows = list(factors), np.random.default_rng(0), []
    left = {
        (a, i, b, j) for a, b in combinations(names, 2) for i in range(len(factors[a])) for j in range(len(factors[b]))
    }
    while left:
        ordered = sorted(left)
        tried = [candidate(names, factors, left, ordered, rng) for _ in range(CANDIDATES)]
        row = max(tried, key=lambda row: len(pairs(row) & left))
        left -= pairs(row)
        rows.append({name: factors[name][row[name]] for name in names})
    return rows


def candidate(names, factors, left, ordered, rng):
    """A row that starts with a pair that is left, and takes for each other factor the value that gains most."""
    a, i, b, j = ordered[rng.integers(len(ordered))]
    row = {a: i, b: j}
    for name in rng.permutation([name for name in names if name not in row]):
        values = rng.permutation(len(factors[name])).tolist()
        row[name] = max(values, key=lambda value: gain(row, str(name), value, left))
    return {name: row[name] for name in names}


def gain(row, name, value, left):
    """How many pairs that are left a row holds with the value of one more factor."""
    return sum((other, i, name, value) in left or (name, value, other, i) in left for other, i in row.items())


def pairs(row):
    """All pairs of a row, in either order of the factors."""
    return {(a, row[a], b, row[b]) for a in row for b in row if a != b}
