"""Log marginals of clusters from their sufficient statistics; an empty cluster has 0."""

import math

import numpy as np

from spinseg._compiled import internal

# The families of dense terms: of d channels, how many statistics a site has, and how many parameters there are.
FAMILIES = {
    "diagonal_gaussian": lambda d: (1 + 2 * d, 3 + d),
    "gaussian": lambda d: (1 + d + d * (d + 1) // 2, 4),
    "poisson_gamma": lambda d: (1 + d, 1 + 2 * d),
}
DIAGONAL_GAUSSIAN, GAUSSIAN, POISSON_GAMMA = range(len(FAMILIES))
HALF_LOG_2_PI = 0.5 * math.log(2 * math.pi)
SMALL, LARGE = 1e-100, 1e100  # between which factors are multiplied before their logarithm is taken


@internal
def bin_value(tables, d, c):
    """What bin d adds to a log marginal at count c: from its table or, where that was too large to keep, directly.

    `tables` are those of the target, `table`, `table_start` and `bin_prior`, which callers load before their loops.
    """
    table, table_start, bin_prior = tables
    if table_start[d] >= 0:
        return table[np.uint64(table_start[d] + c)]
    return bin_prior[d, 2] * (math.lgamma(bin_prior[d, 0] + bin_prior[d, 1] * c) - bin_prior[d, 3])


@internal
def log_gamma(x):
    """lgamma of a positive number by Stirling's series, which takes less than a call of the C library."""
    below = 1.0
    while x < 10.0:
        below *= x
        x += 1.0
    r = 1.0 / x
    s = r * r
    series = r * (1 / 12 - s * (1 / 360 - s * (1 / 1260 - s * (1 / 1680 - s * (1 / 1188 - s * (691 / 360360))))))
    log_p = (x - 0.5) * math.log(x) - x + HALF_LOG_2_PI + series
    return log_p - math.log(below) if below != 1.0 else log_p


@internal
def diagonal_gaussian(d, stat, par):
    """Normal-inverse-gamma; stat = N, sum x (d), sum x^2 (d), x less its prior mean; par = kappa, shape, c, rate (d).

    c, here and below, holds what does not depend on the cluster. Logarithms are taken of products over channels.
    """
    n, kappa_n, shape_n = stat[0], par[0] + stat[0], par[1] + 0.5 * stat[0]
    log_rates, product = 0.0, 1.0
    for c in range(d):
        scatter = stat[1 + d + c] - stat[1 + c] * stat[1 + c] / kappa_n
        rate = par[3 + c] + 0.5 * max(scatter, 0.0)
        if rate < SMALL or rate > LARGE or product < SMALL or product > LARGE:
            log_rates += math.log(product)
            product = 1.0
        if rate < SMALL or rate > LARGE:
            log_rates += math.log(rate)
        else:
            product *= rate
    log_rates += math.log(product)
    return par[2] + d * (log_gamma(shape_n) - 0.5 * math.log(kappa_n) - n * HALF_LOG_2_PI) - shape_n * log_rates


@internal
def gaussian(d, stat, par, work):
    """Normal-inverse-Wishart, white x; stat = N, sum x (d), lower rows of sum xx'; par = kappa, dof, log |scale|, c."""
    n, kappa_n, dof_n = stat[0], par[0] + stat[0], par[1] + stat[0]
    log_p = par[3] - 0.5 * d * math.log(kappa_n) - 0.5 * n * (d * math.log(math.pi) + par[2])
    row = 0
    for i in range(d):  # Cholesky factor of I + sum x x' - (sum x)(sum x)' / kappa_n, row by row
        column = 0
        for j in range(i + 1):
            cell = stat[1 + d + row + j] - stat[1 + i] * stat[1 + j] / kappa_n
            for c in range(j):
                cell -= work[row + c] * work[column + c]
            work[row + j] = math.sqrt(1.0 + max(cell, 0.0)) if i == j else cell / work[column + j]
            column += j + 1
        log_p += log_gamma(0.5 * (dof_n - i)) - dof_n * math.log(work[row + i])
        row += i + 1
    return log_p


@internal
def poisson_gamma(d, stat, par):
    """Poisson counts with gamma rates; stat = exposure, sum y (d); par = c, shape (d), rate (d)."""
    log_p = par[0]
    for c in range(d):
        shape_n = par[1 + c] + stat[1 + c]
        log_p += log_gamma(shape_n) - shape_n * math.log(par[1 + d + c] + stat[0])
    return log_p


@internal
def dense_log_marginal(target, stat, work):
    """Log marginal of all blocks at the summed statistics `stat`, times the power of the evidence, `parameter[0]`."""
    block, parameter, log_p = target.block, target.parameter, 0.0
    for b in range(block.shape[0]):
        family, d = block[b, 0], block[b, 1]
        part, par = stat[block[b, 2] :], parameter[block[b, 3] :]
        if part[0] == 0.0:  # no observation
            continue
        if family == DIAGONAL_GAUSSIAN:
            log_p += diagonal_gaussian(d, part, par)
        elif family == GAUSSIAN:
            log_p += gaussian(d, part, par, work)
        else:
            log_p += poisson_gamma(d, part, par)
    return parameter[0] * log_p
