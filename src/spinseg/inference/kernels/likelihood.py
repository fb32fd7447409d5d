"""Log marginals of clusters from their sufficient statistics; an empty cluster has 0."""

import math

import numpy as np

from spinseg._compiled import internal
from spinseg.inference.kernels.state import DIAGONAL_GAUSSIAN, GAUSSIAN


@internal
def bin_value(table, table_start, bin_prior, d, c):
    """What bin d adds to a log marginal at count c: from its table or, where that was too large to keep, directly."""
    if table_start[d] >= 0:
        return table[np.uint64(table_start[d] + c)]
    return bin_prior[d, 2] * (math.lgamma(bin_prior[d, 0] + bin_prior[d, 1] * c) - bin_prior[d, 3])


@internal
def diagonal_gaussian(d, stat, par):
    """Normal-inverse-gamma; stat = N, sum x (d), sum x^2 (d), x less its prior mean; par = kappa, shape, rate (d)."""
    n, kappa, shape = stat[0], par[0], par[1]
    kappa_n, shape_n = kappa + n, shape + 0.5 * n
    log_p = (
        math.lgamma(shape_n) - math.lgamma(shape) + 0.5 * math.log(kappa / kappa_n) - 0.5 * n * math.log(2 * math.pi)
    )
    log_p *= d
    for c in range(d):
        scatter = stat[1 + d + c] - stat[1 + c] * stat[1 + c] / kappa_n
        log_p += shape * math.log(par[2 + c]) - shape_n * math.log(par[2 + c] + 0.5 * max(scatter, 0.0))
    return log_p


@internal
def gaussian(d, stat, par, work):
    """Normal-inverse-Wishart, whitened x; stat = N, sum x (d), lower rows of sum xx'; par = kappa, dof, log |scale|."""
    n, kappa, dof = stat[0], par[0], par[1]
    kappa_n, dof_n = kappa + n, dof + n
    log_p = 0.5 * d * math.log(kappa / kappa_n) - 0.5 * n * (d * math.log(math.pi) + par[2])
    row = 0
    for i in range(d):  # Cholesky factor of I + sum x x' - (sum x)(sum x)' / kappa_n, row by row
        column = 0
        for j in range(i + 1):
            cell = stat[1 + d + row + j] - stat[1 + i] * stat[1 + j] / kappa_n
            for c in range(j):
                cell -= work[row + c] * work[column + c]
            work[row + j] = math.sqrt(1.0 + max(cell, 0.0)) if i == j else cell / work[column + j]
            column += j + 1
        log_p += math.lgamma(0.5 * (dof_n - i)) - math.lgamma(0.5 * (dof - i)) - dof_n * math.log(work[row + i])
        row += i + 1
    return log_p


@internal
def poisson_gamma(d, stat, par):
    """Poisson counts with gamma rates; stat = exposure, sum y (d); par = shape (d), rate (d)."""
    log_p = 0.0
    for c in range(d):
        shape, rate, y = par[c], par[d + c], stat[1 + c]
        log_p += math.lgamma(shape + y) - math.lgamma(shape)
        log_p += shape * math.log(rate) - (shape + y) * math.log(rate + stat[0])
    return log_p


@internal
def dense_log_marginal(block, parameter, stat, work):
    """Log marginal of all blocks at the summed statistics `stat`. A new family is one more branch."""
    log_p = 0.0
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
    return log_p
