"""Log marginals of clusters from their sufficient statistics; an empty cluster has 0."""

import math
from functools import partial

import numpy as np

from spinseg._compiled import internal

# The families of dense terms: of d channels, how many statistics a site has, and how many parameters there are.
FAMILIES = {
    "diagonal_gaussian": lambda d: (1 + 2 * d, 3 + d),
    "gaussian": lambda d: (1 + d + d * (d + 1) // 2, 4),
    "poisson_gamma": lambda d: (1 + d, 1 + 2 * d),
}
DIAGONAL_GAUSSIAN, GAUSSIAN, POISSON_GAMMA = range(len(FAMILIES))
LOG_2_HIGH = round(math.log(2) * 2**32) / 2**32  # so that its product with an exponent is exact
LOG_2_LOW = -4.2009150726810846e-11  # log(2) less that
HALF_LOG_2_PI = 0.5 * math.log(2 * math.pi)
SMALL, LARGE = 1e-100, 1e100  # between which factors are multiplied before their logarithm is taken
BITS_OF_ROOT, FRACTION = 0x3FE6A09E667F3BCD, (1 << 52) - 1  # sqrt(1/2) as a float64; the bits of a fraction
fused = partial(internal, fastmath={"contract"})  # a product and a sum in one step, where the processor has that


@internal
def bin_value(tables, d, c):
    """What bin d adds to a log marginal at count c: from its table or, where that was too large to keep, directly.

    `tables` are those of the target, `table`, `table_start` and `bin_prior`, which callers load before their loops.
    """
    table, table_start, bin_prior = tables
    if table_start[d] >= 0:
        return table[np.uint64(table_start[d] + c)]
    return bin_prior[d, 2] * (math.lgamma(bin_prior[d, 0] + bin_prior[d, 1] * c) - bin_prior[d, 3])


@fused
def log(x):
    """The logarithm of a positive normal number, to a unit in the last place.

    x = 2^k (1 + f), and log(1 + f) = 2 artanh(s) = 2 s + s r with s = f / (2 + f), the leading part of which is exact:
    f - f^2 / 2. `math.log` would be a call of the C library.
    """
    bits = np.float64(x).view(np.int64) - BITS_OF_ROOT
    f = np.int64((bits & FRACTION) + BITS_OF_ROOT).view(np.float64) - 1.0  # within a root of 2
    k, s, half = float(bits >> 52), f / (2.0 + f), 0.5 * f * f
    z = s * s
    w = z * z
    even = w * (2 / 5 + w * (2 / 9 + w * (2 / 13 + w * (2 / 17))))
    odd = z * (2 / 3 + w * (2 / 7 + w * (2 / 11 + w * (2 / 15 + w * (2 / 19)))))
    return k * LOG_2_HIGH - ((half - (s * (half + (even + odd)) + k * LOG_2_LOW)) - f)


@fused
def stirling(x):
    """y = x + 8, 1 / y, s and p, for which lgamma(x) = (x - 1/2) log(y) + s + log(y^8 / p): of a positive number.

    Stirling's series at y, without a branch to mispredict and with one division.
    """
    y = x + 8.0
    p = (x * (x + 1.0)) * ((x + 2.0) * (x + 3.0)) * (((x + 4.0) * (x + 5.0)) * ((x + 6.0) * (x + 7.0)))
    r = 1.0 / y
    s = r * r
    tail = s * (1 / 1188 - s * (691 / 360360 - s * (1 / 156 - s * (3617 / 122400))))
    series = r * (1 / 12 - s * (1 / 360 - s * (1 / 1260 - s * (1 / 1680 - tail))))
    return y, r, HALF_LOG_2_PI + series - y, p


@fused
def log_gamma(x):
    """lgamma of a positive number, which takes less than a call of the C library."""
    y, _, s, p = stirling(x)
    return (x - 0.5) * log(y) + s + log(y * y * y * y * y * y * y * y / p)


@fused
def diagonal_gaussian(d, stat, at, par, first):
    """Normal-inverse-gamma; stat = N, sum x (d), sum x^2 (d), x less its prior mean; par = kappa, shape, c, rate (d).

    Here and below these begin at `at` and `first`, and c holds what does not depend on the cluster. Returns the log
    marginal less d log(f), and f: callers take the logarithm of a product of several.
    """
    n = stat[at]
    kappa_n, shape_n = par[first] + n, par[first + 1] + 0.5 * n
    y, inverse_y, s, p = stirling(shape_n)
    y4, inverse_kappa = (y * y) * (y * y), 1.0 / kappa_n
    log_p, product = par[first + 2] + d * (s - n * HALF_LOG_2_PI), 1.0
    for c in range(d):
        x = stat[at + 1 + c]
        scatter = stat[at + 1 + d + c] - x * x * inverse_kappa
        rate = (par[first + 3 + c] + 0.5 * max(scatter, 0.0)) * inverse_y
        if rate < SMALL or rate > LARGE or product < SMALL or product > LARGE:
            log_p -= shape_n * log(product)
            product = 1.0
        if rate < SMALL or rate > LARGE:
            log_p -= shape_n * math.log(rate)
        else:
            product *= rate
    return log_p - shape_n * log(product), y4 * y4 / (p * math.sqrt(y * kappa_n))


@fused
def gaussian(d, stat, at, par, first, work):
    """Normal-inverse-Wishart, white x; stat = N, sum x (d), lower rows of sum xx'; par = kappa, dof, log |scale|, c."""
    n = stat[at]
    kappa_n, dof_n = par[first] + n, par[first + 1] + n
    log_p = par[first + 3] - 0.5 * d * log(kappa_n) - 0.5 * n * (d * math.log(math.pi) + par[first + 2])
    row = 0
    for i in range(d):  # Cholesky factor of I + sum x x' - (sum x)(sum x)' / kappa_n, row by row
        column = 0
        for j in range(i + 1):
            cell = stat[at + 1 + d + row + j] - stat[at + 1 + i] * stat[at + 1 + j] / kappa_n
            for c in range(j):
                cell -= work[row + c] * work[column + c]
            work[row + j] = math.sqrt(1.0 + max(cell, 0.0)) if i == j else cell / work[column + j]
            column += j + 1
        log_p += log_gamma(0.5 * (dof_n - i)) - dof_n * log(work[row + i])
        row += i + 1
    return log_p


@fused
def poisson_gamma(d, stat, at, par, first):
    """Poisson counts with gamma rates; stat = exposure, sum y (d); par = c, shape (d), rate (d)."""
    log_p = par[first]
    for c in range(d):
        shape_n = par[first + 1 + c] + stat[at + 1 + c]
        log_p += log_gamma(shape_n) - shape_n * log(par[first + 1 + d + c] + stat[at])
    return log_p


@internal
def dense_log_marginal(target, stat, work):
    """Log marginal of all blocks at the summed statistics `stat`, times the power of the evidence, `parameter[0]`."""
    block, parameter, log_p, product = target.block, target.parameter, 0.0, 1.0
    for b in range(block.shape[0]):
        family, d, at, first = block[b, 0], block[b, 1], block[b, 2], block[b, 3]
        if stat[at] == 0.0:  # no observation
            continue
        if family == DIAGONAL_GAUSSIAN:
            rest, f = diagonal_gaussian(d, stat, at, parameter, first)
            log_p += rest
            for _ in range(d):  # one logarithm for all blocks, rather than one for each
                product *= f
                if product < SMALL or product > LARGE:
                    log_p += log(product)
                    product = 1.0
        elif family == GAUSSIAN:
            log_p += gaussian(d, stat, at, parameter, first, work)
        else:
            log_p += poisson_gamma(d, stat, at, parameter, first)
    return parameter[0] * (log_p + log(product))
