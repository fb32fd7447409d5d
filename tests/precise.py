"""Log marginals with 60 digits: what large shapes, of which float64 has too few, are compared with."""

from decimal import Decimal, getcontext

import numpy as np

getcontext().prec = 60
PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494")
# The coefficients of x^-1, x^-3, .. of Stirling's series.
STIRLING = [
    Decimal(a) / Decimal(b)
    for a, b in (
        (1, 12),
        (-1, 360),
        (1, 1260),
        (-1, 1680),
        (1, 1188),
        (-691, 360360),
        (1, 156),
        (-3617, 122400),
        (43867, 244188),
    )
]


def exactly(values) -> np.ndarray:
    """Floating-point numbers as an array of decimal ones, digit by digit."""
    return np.vectorize(lambda value: Decimal(float(value)), otypes=[object])(np.asarray(values))


def lgamma(x: Decimal) -> Decimal:
    """The logarithm of the gamma function, to 30 digits or more."""
    shift, y = Decimal(0), x
    while y < 100:
        shift, y = shift + y.ln(), y + 1
    series = sum(c / y ** (2 * i + 1) for i, c in enumerate(STIRLING))
    return (y - Decimal("0.5")) * y.ln() - y + (2 * PI).ln() / 2 + series - shift


def diagonal_gaussian(x, w, kappa, shape, rate) -> Decimal:
    """`DiagonalGaussian` around a mean of 0, of sites with values (n, d), weights (n,) and one rate."""
    n, total = w.sum(), Decimal(0)
    for column in x.T:
        rate_n = rate + (w @ column**2 - (w @ column) ** 2 / (kappa + n)) / 2
        total += lgamma(shape + n / 2) - lgamma(shape) + shape * rate.ln() - (shape + n / 2) * rate_n.ln()
        total += (kappa / (kappa + n)).ln() / 2 - n / 2 * (2 * PI).ln()
    return total


def gaussian(x, w, kappa, dof, scale) -> Decimal:
    """`Gaussian` around a mean of 0, of two channels and a scale of (2, 2)."""
    n, first = w.sum(), w @ x
    scale_n = scale + (x * w[:, None]).T @ x - np.outer(first, first) / (kappa + n)
    log_det, log_det_n = ((s[0, 0] * s[1, 1] - s[0, 1] * s[1, 0]).ln() for s in (scale, scale_n))
    total = sum(lgamma((dof + n - i) / 2) - lgamma((dof - i) / 2) for i in range(2))
    return total + (dof * log_det - (dof + n) * log_det_n) / 2 + (kappa / (kappa + n)).ln() - n * PI.ln()


def poisson_gamma(y, e, shape, rate) -> Decimal:
    """`PoissonGamma` with one shape and rate, without what does not depend on the partition."""
    total = Decimal(0)
    for count in y.sum(axis=0):
        total += lgamma(shape + count) - lgamma(shape) + shape * rate.ln() - (shape + count) * (rate + e.sum()).ln()
    return total
