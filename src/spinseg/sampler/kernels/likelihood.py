"""Log marginals of clusters from their sufficient statistics; an empty cluster has 0.

Where the prior is narrow, a log marginal is a small difference of large numbers. So no term here is large that another
one cancels: lgamma(a + h) - lgamma(a), by Stirling's series at y = x + 8, is

    (a + h - 1/2) log(y / y_0) + h (log(y_0) - 1) + rest(a + h) - rest(a),    y = a + h + 8,    y_0 = a + 8,

and its first term is joined with that of the data in one `log_ratio`. `packed` computes what no cluster changes.
"""

import math
from functools import partial

import numpy as np

from spinseg._compiled import internal

# The families of dense terms: of d channels, how many statistics a site has, and how many parameters there are. One of
# these, c, is added for each cluster.
FAMILIES = {
    "diagonal_gaussian": lambda d: (1 + 2 * d, 3 + d),
    "gaussian": lambda d: (1 + d + d * (d + 1) // 2, 4),
    "poisson_gamma": lambda d: (1 + d, 1 + 2 * d),
}
DIAGONAL_GAUSSIAN, GAUSSIAN, POISSON_GAMMA = range(len(FAMILIES))
LOG_2_HIGH = round(math.log(2) * 2**32) / 2**32  # so that its product with an exponent is exact
LOG_2_LOW = -4.2009150726810846e-11  # log(2) less that
SMALL, LARGE = 1e-100, 1e100  # between which factors are multiplied before their logarithm is taken
BITS_OF_ROOT, FRACTION = 0x3FE6A09E667F3BCD, (1 << 52) - 1  # sqrt(1/2) as a float64; the bits of a fraction
HALF = 1 << 51  # of a power of 2, in bits
fused = partial(internal, fastmath={"contract"})  # a product and a sum in one step, where the processor has that


@internal
def bin_value(tables, d, c):
    """What bin d adds to a log marginal at count c: from its table or, where that was too large to keep, directly.

    `tables` are those of the target, `table`, `table_start` and `bin_prior`, which callers load before their loops.
    """
    table, table_start, bin_prior = tables
    if table_start[d] >= 0:
        return table[np.uint64(table_start[d] + c)]
    if c == 0:
        return 0.0
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
def log_ratio(q, p):
    """log((1 + q) / (1 + p)) of q, p >= 0, whose difference keeps its digits where both are small.

    It is k log(2) + 2 artanh(s), s = (a - b) / (a + b), with a = 1 + q and b = 2^k (1 + p), of which neither is more
    than 1.5 times the other.
    """
    a, b = 1.0 + q, 1.0 + p
    k = (np.float64(a).view(np.int64) - np.float64(b).view(np.int64) + HALF) >> 52
    b *= np.int64((k + 1023) << 52).view(np.float64)
    s = (q - p if k == 0 else a - b) / (a + b)
    z = s * s
    w = z * z
    odd = 2 / 3 + w * (2 / 7 + w * (2 / 11 + w * (2 / 15 + w * (2 / 19))))
    even = z * (2 / 5 + w * (2 / 9 + w * (2 / 13 + w * (2 / 17 + w * (2 / 21)))))
    return k * LOG_2_HIGH + (2.0 * s + (s * z * (odd + even) + k * LOG_2_LOW))


@fused
def stirling(x):
    """y = x + 8, the series, y^8 and p = x (x + 1) .. (x + 7), with rest(x) = series + log(y^8 / p), of x > 0.

    lgamma(x) = (x - 1/2) log(y) - y + log(2 pi) / 2 + rest(x): Stirling's series at y, without a branch to mispredict.
    """
    y = x + 8.0
    p = (x * (x + 1.0)) * ((x + 2.0) * (x + 3.0)) * (((x + 4.0) * (x + 5.0)) * ((x + 6.0) * (x + 7.0)))
    r = 1.0 / y
    s = r * r
    tail = s * (1 / 1188 - s * (691 / 360360 - s * (1 / 156 - s * (3617 / 122400))))
    series = r * (1 / 12 - s * (1 / 360 - s * (1 / 1260 - s * (1 / 1680 - tail))))
    y4 = (y * y) * (y * y)
    return y, series, y4 * y4, p


def rest(x):
    """`rest` of `stirling`."""
    _, series, power, p = getattr(stirling, "py_func", stirling)(x)
    return series + math.log(power / p)


def packed(family, d, parameters):
    """The parameters of a family as its function here takes them: as they are, but for those of three families.

    Normal-inverse-gamma: kappa, shape, 1 / y_0, k, c, 1 / (2 rate) (d).
    Normal-inverse-Wishart: kappa, dof, k, c.
    Poisson counts with gamma rates: c, shape (d), rate (d), k (d).
    c holds what does not depend on the cluster, and k what is in proportion to the number of its observations.
    """
    if family == "diagonal_gaussian":
        (kappa, shape, c), rate, y = parameters[:3], parameters[3:], parameters[1] + 8.0
        k = d * (math.log(y) - 1.0 - math.log(2 * math.pi)) - np.log(rate).sum()
        c += d * (0.5 * math.log(kappa) + 0.5 * math.log(y) - rest(shape))
        return np.concatenate([[kappa, shape, 1.0 / y, k, c], 0.5 / rate])
    if family == "gaussian":
        (kappa, dof, log_scale, c), x = parameters, 0.5 * (parameters[1] - np.arange(d))
        k = np.log(x + 8.0).sum() - log_scale - d * (1.0 + math.log(math.pi))
        c += 0.5 * d * math.log(kappa) + 0.5 * np.arange(1, d + 1) @ np.log(x + 8.0) - sum(map(rest, x))
        return np.array([kappa, dof, k, c])
    if family == "poisson_gamma":
        shape, rate = np.split(parameters[1:], 2)
        c = parameters[0] + 0.5 * np.log(shape + 8.0).sum() - sum(map(rest, shape))
        return np.concatenate([[c], shape, rate, np.log(shape + 8.0) - np.log(rate) - 1.0])
    return parameters


@fused
def diagonal_gaussian(d, stat, at, par, first):
    """Normal-inverse-gamma; stat = N, sum x (d), sum x^2 (d), x less its prior mean, and par as in `packed`.

    Here and below these begin at `at` and `first`. Returns the log marginal less d log(f), and f: callers take the
    logarithm of a product of several.
    """
    half_n = 0.5 * stat[at]
    kappa_n, shape_n = par[first] + stat[at], par[first + 1] + half_n
    y, series, power, rising = stirling(shape_n)
    inverse_kappa, growth = 1.0 / kappa_n, half_n * par[first + 2]
    log_p = par[first + 4] + half_n * par[first + 3] + d * series
    q, p = 0.0, 0.0  # the products over channels of y / y_0, and of rate_n / rate, less 1
    for c in range(d):
        x = stat[at + 1 + c]
        scatter = max(stat[at + 1 + d + c] - x * x * inverse_kappa, 0.0) * par[first + 5 + c]
        if p > LARGE or q > LARGE or scatter > LARGE:
            log_p += shape_n * log_ratio(q, p)
            q, p = 0.0, 0.0
        if scatter > LARGE:
            log_p -= shape_n * log(scatter)
        else:
            p += scatter + p * scatter
        q += growth + q * growth
    return log_p + shape_n * log_ratio(q, p), power / (rising * math.sqrt(y * kappa_n))


@fused
def gaussian(d, stat, at, par, first, work):
    """Normal-inverse-Wishart, white x; stat = N, sum x (d), lower rows of sum xx'; par as in `packed`."""
    n = stat[at]
    half_n, kappa_n, dof_n = 0.5 * n, par[first] + n, par[first + 1] + n
    log_p = par[first + 3] + half_n * par[first + 2]
    q, p = 0.0, 0.0  # the products over rows of y / y_0, and of the squared diagonal of the factor, less 1
    row = 0
    for i in range(d):  # Cholesky factor of I + sum x x' - (sum x)(sum x)' / kappa_n, row by row
        column = 0
        for j in range(i + 1):
            cell = stat[at + 1 + d + row + j] - stat[at + 1 + i] * stat[at + 1 + j] / kappa_n
            for c in range(j):
                cell -= work[row + c] * work[column + c]
            if i == j:
                cell = max(cell, 0.0)
                work[row + j] = math.sqrt(1.0 + cell)
                p += cell + p * cell
            else:
                work[row + j] = cell / work[column + j]
            column += j + 1
        y, series, power, rising = stirling(0.5 * (dof_n - i))
        log_p += series + log(power / (rising * math.sqrt(y * kappa_n))) - (0.5 * i * log(y) if i > 0 else 0.0)
        growth = half_n / (0.5 * (par[first + 1] - i) + 8.0)
        q += growth + q * growth
        if p > LARGE or q > LARGE:
            log_p += 0.5 * dof_n * log_ratio(q, p)
            q, p = 0.0, 0.0
        row += i + 1
    return log_p + 0.5 * dof_n * log_ratio(q, p)


@fused
def poisson_gamma(d, stat, at, par, first):
    """Poisson counts with gamma rates; stat = exposure, sum y (d); par as in `packed`."""
    log_p, exposure = par[first], stat[at]
    for c in range(d):
        total, shape = stat[at + 1 + c], par[first + 1 + c]
        y, series, power, rising = stirling(shape + total)
        ratio = log_ratio(total / (shape + 8.0), exposure / par[first + 1 + d + c])
        log_p += (shape + total) * ratio + total * par[first + 1 + 2 * d + c]
        log_p += series + log(power / (rising * math.sqrt(y)))
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
            but_f, f = diagonal_gaussian(d, stat, at, parameter, first)
            log_p += but_f
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
