"""In how many ways a class of sets can label n points."""

from math import comb


def half_space_growth(n: int, dimension: int) -> int:
    r"""The number of labellings of n points of :math:`R^d` in general position by half-spaces.

    .. math:: F(n) = 2 \sum_{k=0}^{d} \binom{n-1}{k}

    It is :math:`2^n` up to n = d + 1, which is therefore the VC dimension, and grows like
    :math:`n^d` after that. Points in general position are the worst case.

    Args:
        n: number of points, at least 1.
        dimension: :math:`d`, at least 0; the half-spaces need not contain the origin.

    Example:
        >>> from ansatz.theory import half_space_growth
        >>> [half_space_growth(n, 2) for n in (3, 4, 5)]  # of 8, 16 and 32
        [8, 14, 22]

    References:
        Cover (1965), Geometrical and statistical properties of systems of linear inequalities,
        eq. 6, with d + 1 in place of its d for the intercept.
    """
    _require_counts(n=n, dimension=dimension)
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}.")
    return 2 * sum(comb(n - 1, k) for k in range(dimension + 1))


def sauer_bound(n: int, vc_dimension: int) -> int:
    r"""The most labellings of n points that a class of a given VC dimension can have.

    .. math:: F(n) \le \sum_{k=0}^{v} \binom{n}{k} \le \Big(\frac{e n}{v}\Big)^v \quad (n \ge v)

    Either all :math:`2^n` or polynomially many: nothing in between. Intervals on a line (v = 2)
    attain it.

    Args:
        n: number of points.
        vc_dimension: :math:`v`.

    Example:
        >>> from ansatz.theory import sauer_bound
        >>> [sauer_bound(n, 3) for n in (3, 4, 10)]
        [8, 15, 176]

    References:
        Sauer (1972), On the density of families of sets; Shelah (1972).
    """
    _require_counts(n=n, vc_dimension=vc_dimension)
    return sum(comb(n, k) for k in range(vc_dimension + 1))


def _require_counts(**counts: int) -> None:
    for name, value in counts.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise ValueError(f"{name} must be a whole number >= 0, got {value!r}.")
