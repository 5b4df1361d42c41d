r"""The robust losses that are members of Barron's family: one shape each.

In every one of them x = (y - f) / c, with c the median absolute deviation of y from its median
times 1.4826, or given: ``scale=1`` counts in the unit of y. Near 0 each is x^2 / 2.
"""

from ansatz.likelihoods.barron import Barron
from ansatz.likelihoods.point_loss import RobustScale, require_scale


class _Shape(Barron):
    has_distribution = False
    shape_of_barron: float

    def __init__(self, *, scale: RobustScale = "mad") -> None:
        require_scale(type(self).__name__, scale)
        super().__init__(alpha=self.shape_of_barron, dispersion=scale)


class Charbonnier(_Shape):
    r"""Squared error near 0, absolute error far away, smooth between them: pseudo-Huber.

    .. math:: \ell = \sqrt{1 + x^2} - 1, \qquad x = (y - f) / c

    :class:`Barron` with :math:`\alpha` = 1; SciPy calls it ``soft_l1``. It predicts no
    distribution.

    Args:
        scale: c, ``"mad"`` for the median absolute deviation of y times 1.4826, or a known number.

    Shapes:
        - raw: ``(..., 1)``.
        - y: ``(...)``.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Charbonnier
        >>> Charbonnier(scale=1.0).loss(torch.zeros(1, 1), torch.tensor([3.0]))  # sqrt(10) - 1
        tensor([2.1623])

    References:
        Charbonnier et al. (1994), Two deterministic half-quadratic regularization algorithms for
        computed imaging. https://doi.org/10.1109/ICIP.1994.413553
    """

    name = "charbonnier"
    shape_of_barron = 1.0


class Cauchy(_Shape):
    r"""A loss that grows like a logarithm: Lorentzian, the Cauchy distribution's up to its scale.

    .. math:: \ell = \log(1 + x^2 / 2), \qquad x = (y - f) / c

    :class:`Barron` with :math:`\alpha` = 0. SciPy's ``cauchy`` has :math:`\log(1 + x^2)`: the same
    with :math:`c / \sqrt 2`, up to a factor. It predicts no distribution; ``student_t`` does.

    Args:
        scale: c, ``"mad"`` for the median absolute deviation of y times 1.4826, or a known number.

    Shapes:
        - raw: ``(..., 1)``.
        - y: ``(...)``.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Cauchy
        >>> Cauchy(scale=1.0).loss(torch.zeros(1, 1), torch.tensor([2.0]))  # log 3
        tensor([1.0986])

    References:
        Black and Anandan (1996), The robust estimation of multiple motions.
        https://doi.org/10.1006/cviu.1996.0006
    """

    name = "cauchy"
    shape_of_barron = 0.0


class GemanMcClure(_Shape):
    r"""A loss that levels off at 2: far points stop pulling.

    .. math:: \ell = \frac{2 x^2}{x^2 + 4}, \qquad x = (y - f) / c

    :class:`Barron` with :math:`\alpha` = -2. It predicts no distribution.

    Args:
        scale: c, ``"mad"`` for the median absolute deviation of y times 1.4826, or a known number.

    Shapes:
        - raw: ``(..., 1)``.
        - y: ``(...)``.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import GemanMcClure
        >>> GemanMcClure(scale=1.0).loss(torch.zeros(2, 1), torch.tensor([2.0, 1e4]))
        tensor([1., 2.])

    References:
        Geman and McClure (1985), Bayesian image analysis: an application to single photon emission
        tomography.
    """

    name = "geman_mcclure"
    shape_of_barron = -2.0


class Welsch(_Shape):
    r"""A loss that levels off at 1 as fast as a Gaussian falls; also named after Leclerc.

    .. math:: \ell = 1 - e^{-x^2 / 2}, \qquad x = (y - f) / c

    :class:`Barron` with :math:`\alpha = -\infty`. It predicts no distribution.

    Args:
        scale: c, ``"mad"`` for the median absolute deviation of y times 1.4826, or a known number.

    Shapes:
        - raw: ``(..., 1)``.
        - y: ``(...)``.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Welsch
        >>> Welsch(scale=1.0).loss(torch.zeros(2, 1), torch.tensor([1.0, 9.0]))
        tensor([0.3935, 1.0000])

    References:
        Dennis and Welsch (1978), Techniques for nonlinear least squares and robust regression.
        https://doi.org/10.1080/03610917808812083
    """

    name = "welsch"
    shape_of_barron = float("-inf")
