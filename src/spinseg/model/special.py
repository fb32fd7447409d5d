"""Log-gamma differences without loss of digits."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaln, gammaln


def log_rising(x: ArrayLike, n: ArrayLike) -> NDArray[np.float64]:
    """lgamma(x + n) - lgamma(x) for x > 0, n >= 0, also where x is so large that the two are the same number.

    Through the beta function, lgamma(n) - log B(x, n); it is log x(x+1)..(x+n-1) for whole n.
    """
    n = np.asarray(n, np.float64)
    some = np.where(n > 0, n, 1.0)
    return np.where(n > 0, gammaln(some) - betaln(x, some), 0.0)
