"""Log marginals of clusters from their sufficient statistics; an empty cluster has 0.

Where the prior is narrow, a log marginal is a small difference of large numbers. So no term here is large that another
one cancels: lgamma(a + h) - lgamma(a), by Stirling's series at y = x + 8, is

    (a + h - 1/2) log(y / y_0) + h (log(y_0) - 1) + rest(a + h) - rest(a),    y = a + h + 8,    y_0 = a + 8,

and its first term is joined with that of the data in one `log_ratio`. `packed` computes what no cluster changes.
"""

import cython
import numpy as np
from cython.cimports.libc import math

from spinseg.sampler.kernels.state import Index, Real, Sums, Target

if cython.compiled:
    from cython.cimports.libc.string import memcpy

# The families of dense terms: of d channels, how many statistics a site has, and how many parameters there are. One of
# these, c, is added for each cluster.
FAMILIES = {
    "diagonal_gaussian": lambda d: (1 + 2 * d, 3 + d),
    "gaussian": lambda d: (1 + d + d * (d + 1) // 2, 4),
    "poisson_gamma": lambda d: (1 + d, 1 + 2 * d),
}
DIAGONAL_GAUSSIAN, GAUSSIAN, POISSON_GAMMA = range(len(FAMILIES))
LOG_2_HIGH = cython.declare(
    cython.double, round(math.log(2.0) * 2**32) / 2**32
)  # so that its product with an exponent is exact
LOG_2_LOW = cython.declare(cython.double, -4.2009150726810846e-11)  # log(2) less that
SMALL = cython.declare(cython.double, 1e-100)  # between which factors are multiplied before their logarithm is taken
LARGE = cython.declare(cython.double, 1e100)
BITS_OF_ROOT = cython.declare(cython.longlong, 0x3FE6A09E667F3BCD)  # sqrt(1/2) as a float64
FRACTION = cython.declare(cython.longlong, (1 << 52) - 1)  # the bits of a fraction
HALF = cython.declare(cython.longlong, 1 << 51)  # of a power of 2, in bits


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def bin_value(target: Target, d: Index, c: Index) -> Real:
    """What bin d adds to a log marginal at count c: from its table or, where that was too large to keep, directly."""
    if target.table_start[d] >= 0:
        return target.table[target.table_start[d] + c]
    if c == 0:
        return 0.0
    total = math.lgamma(target.bin_prior[d, 0] + target.bin_prior[d, 1] * c)
    return target.bin_prior[d, 2] * (total - target.bin_prior[d, 3])


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def bits_of(x: Real) -> cython.longlong:
    """The bits of a float64 as a whole number."""
    bits: cython.longlong = 0
    if cython.compiled:
        memcpy(cython.address(bits), cython.address(x), 8)
    else:
        bits = int(np.float64(x).view(np.int64))
    return bits


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def from_bits(bits: cython.longlong) -> Real:
    """The float64 of these bits."""
    x: Real = 0.0
    if cython.compiled:
        memcpy(cython.address(x), cython.address(bits), 8)
    else:
        x = float(np.int64(bits).view(np.float64))
    return x


@cython.ccall
@cython.nogil
@cython.exceptval(check=False)
def log(x: Real) -> Real:
    """The logarithm of a positive normal number, to a unit in the last place.

    x = 2^k (1 + f), and log(1 + f) = 2 artanh(s) = 2 s + s r with s = f / (2 + f), the leading part of which is exact:
    f - f^2 / 2. `math.log` would be a call of the C library.
    """
    bits = bits_of(x) - BITS_OF_ROOT
    f = from_bits((bits & FRACTION) + BITS_OF_ROOT) - 1.0  # within a root of 2
    k = 1.0 * (bits >> 52)
    s, half = f / (2.0 + f), 0.5 * f * f
    z = s * s
    w = z * z
    even = w * (2.0 / 5.0 + w * (2.0 / 9.0 + w * (2.0 / 13.0 + w * (2.0 / 17.0))))
    odd = z * (2.0 / 3.0 + w * (2.0 / 7.0 + w * (2.0 / 11.0 + w * (2.0 / 15.0 + w * (2.0 / 19.0)))))
    return k * LOG_2_HIGH - ((half - (s * (half + (even + odd)) + k * LOG_2_LOW)) - f)


@cython.ccall
@cython.nogil
@cython.exceptval(check=False)
def log_ratio(q: Real, p: Real) -> Real:
    """log((1 + q) / (1 + p)) of q, p >= 0, whose difference keeps its digits where both are small.

    It is k log(2) + 2 artanh(s), s = (a - b) / (a + b), with a = 1 + q and b = 2^k (1 + p), of which neither is more
    than 1.5 times the other.
    """
    a, b = 1.0 + q, 1.0 + p
    k = (bits_of(a) - bits_of(b) + HALF) >> 52
    b *= from_bits((k + 1023) << 52)
    s = (q - p if k == 0 else a - b) / (a + b)
    z = s * s
    w = z * z
    odd = 2.0 / 3.0 + w * (2.0 / 7.0 + w * (2.0 / 11.0 + w * (2.0 / 15.0 + w * (2.0 / 19.0))))
    even = z * (2.0 / 5.0 + w * (2.0 / 9.0 + w * (2.0 / 13.0 + w * (2.0 / 17.0 + w * (2.0 / 21.0)))))
    return k * LOG_2_HIGH + (2.0 * s + (s * z * (odd + even) + k * LOG_2_LOW))


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def stirling(x: Real) -> tuple[Real, Real, Real, Real]:
    """y = x + 8, the series, y^8 and p = x (x + 1) .. (x + 7), with rest(x) = series + log(y^8 / p), of x > 0.

    lgamma(x) = (x - 1/2) log(y) - y + log(2 pi) / 2 + rest(x): Stirling's series at y, without a branch to mispredict.
    """
    y = x + 8.0
    p = (x * (x + 1.0)) * ((x + 2.0) * (x + 3.0)) * (((x + 4.0) * (x + 5.0)) * ((x + 6.0) * (x + 7.0)))
    r = 1.0 / y
    s = r * r
    tail = s * (1.0 / 1188.0 - s * (691.0 / 360360.0 - s * (1.0 / 156.0 - s * (3617.0 / 122400.0))))
    series = r * (1.0 / 12.0 - s * (1.0 / 360.0 - s * (1.0 / 1260.0 - s * (1.0 / 1680.0 - tail))))
    y4 = (y * y) * (y * y)
    return y, series, y4 * y4, p


def rest(x):
    """`rest` of `stirling`."""
    _, series, power, p = stirling(x)
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
        k = d * (math.log(y) - 1.0 - math.log(2 * np.pi)) - np.log(rate).sum()
        c += d * (0.5 * math.log(kappa) + 0.5 * math.log(y) - rest(shape))
        return np.concatenate([[kappa, shape, 1.0 / y, k, c], 0.5 / rate])
    if family == "gaussian":
        (kappa, dof, log_scale, c), x = parameters, 0.5 * (parameters[1] - np.arange(d))
        k = np.log(x + 8.0).sum() - log_scale - d * (1.0 + math.log(np.pi))
        c += 0.5 * d * math.log(kappa) + 0.5 * np.arange(1, d + 1) @ np.log(x + 8.0) - sum(map(rest, x))
        return np.array([kappa, dof, k, c])
    if family == "poisson_gamma":
        shape, rate = np.split(parameters[1:], 2)
        c = parameters[0] + 0.5 * np.log(shape + 8.0).sum() - sum(map(rest, shape))
        return np.concatenate([[c], shape, rate, np.log(shape + 8.0) - np.log(rate) - 1.0])
    return parameters


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def diagonal_gaussian(d: Index, target: Target, sums: Sums, at: Index, first: Index) -> tuple[Real, Real]:
    """Normal-inverse-gamma; statistics N, sum x (d), sum x^2 (d), x less its prior mean; parameters as in `packed`.

    Here and below these begin at `at` in `joined` and at `first`. Returns the log marginal less d log(f), and f:
    callers take the logarithm of a product of several.
    """
    half_n = 0.5 * sums.joined[at]
    kappa_n, shape_n = target.parameter[first] + sums.joined[at], target.parameter[first + 1] + half_n
    y, series, power, rising = stirling(shape_n)
    inverse_kappa, growth = 1.0 / kappa_n, half_n * target.parameter[first + 2]
    log_p = target.parameter[first + 4] + half_n * target.parameter[first + 3] + d * series
    q, p = 0.0, 0.0  # the products over channels of y / y_0, and of rate_n / rate, less 1
    for c in range(d):
        x = sums.joined[at + 1 + c]
        scatter = max(sums.joined[at + 1 + d + c] - x * x * inverse_kappa, 0.0) * target.parameter[first + 5 + c]
        if p > LARGE or q > LARGE or scatter > LARGE:
            log_p += shape_n * log_ratio(q, p)
            q, p = 0.0, 0.0
        if scatter > LARGE:
            log_p -= shape_n * log(scatter)
        else:
            p += scatter + p * scatter
        q += growth + q * growth
    return log_p + shape_n * log_ratio(q, p), power / (rising * math.sqrt(y * kappa_n))


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def gaussian(d: Index, target: Target, sums: Sums, at: Index, first: Index) -> Real:
    """Normal-inverse-Wishart, white x; statistics N, sum x (d), lower rows of sum xx'; parameters as in `packed`."""
    n = sums.joined[at]
    half_n, kappa_n, dof_n = 0.5 * n, target.parameter[first] + n, target.parameter[first + 1] + n
    log_p = target.parameter[first + 3] + half_n * target.parameter[first + 2]
    q, p = 0.0, 0.0  # the products over rows of y / y_0, and of the squared diagonal of the factor, less 1
    row, product, root_kappa = 0, 1.0, math.sqrt(kappa_n)
    for i in range(d):  # Cholesky factor of I + sum x x' - (sum x)(sum x)' / kappa_n, row by row
        column = 0
        for j in range(i + 1):
            cell = sums.joined[at + 1 + d + row + j] - sums.joined[at + 1 + i] * sums.joined[at + 1 + j] / kappa_n
            for c in range(j):
                cell -= sums.work[row + c] * sums.work[column + c]
            if i == j:
                cell = max(cell, 0.0)
                sums.work[row + j] = math.sqrt(1.0 + cell)
                p += cell + p * cell
            else:
                sums.work[row + j] = cell / sums.work[column + j]
            column += j + 1
        y, series, power, rising = stirling(0.5 * (dof_n - i))
        root = math.sqrt(y)
        log_p += series
        product *= power / (rising * root_kappa * root)
        for _ in range(i):
            product /= root
            if product < SMALL or product > LARGE:
                log_p += log(product)
                product = 1.0
        growth = half_n / (0.5 * (target.parameter[first + 1] - i) + 8.0)
        q += growth + q * growth
        if p > LARGE or q > LARGE:
            log_p += 0.5 * dof_n * log_ratio(q, p)
            q, p = 0.0, 0.0
        row += i + 1
    return log_p + log(product) + 0.5 * dof_n * log_ratio(q, p)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def poisson_gamma(d: Index, target: Target, sums: Sums, at: Index, first: Index) -> Real:
    """Poisson counts with gamma rates; statistics exposure, sum y (d); parameters as in `packed`."""
    log_p, exposure, product = target.parameter[first], sums.joined[at], 1.0
    for c in range(d):
        total, shape = sums.joined[at + 1 + c], target.parameter[first + 1 + c]
        y, series, power, rising = stirling(shape + total)
        ratio = log_ratio(total / (shape + 8.0), exposure / target.parameter[first + 1 + d + c])
        log_p += (shape + total) * ratio + total * target.parameter[first + 1 + 2 * d + c]
        log_p += series
        product *= power / (rising * math.sqrt(y))
        if product < SMALL or product > LARGE:
            log_p += log(product)
            product = 1.0
    return log_p + log(product)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def dense_log_marginal(target: Target, sums: Sums) -> Real:
    """Log marginal of all blocks at the statistics in `joined`, times the power of the evidence, `parameter[0]`."""
    log_p, product = 0.0, 1.0
    for b in range(target.block.shape[0]):
        family: Index = target.block[b, 0]
        d: Index = target.block[b, 1]
        at: Index = target.block[b, 2]
        first: Index = target.block[b, 3]
        if sums.joined[at] == 0.0:  # no observation
            continue
        if family == DIAGONAL_GAUSSIAN:
            but_f, f = diagonal_gaussian(d, target, sums, at, first)
            log_p += but_f
            for _ in range(d):  # one logarithm for all blocks, rather than one for each
                product *= f
                if product < SMALL or product > LARGE:
                    log_p += log(product)
                    product = 1.0
        elif family == GAUSSIAN:
            log_p += gaussian(d, target, sums, at, first)
        else:
            log_p += poisson_gamma(d, target, sums, at, first)
    return target.parameter[0] * (log_p + log(product))
