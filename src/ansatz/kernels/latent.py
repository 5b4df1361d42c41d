"""Gaussian processes behind any likelihood: Laplace's approximation at the mode."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from ansatz.errors import NumericalError
from ansatz.kernels.kernel import Kernel
from ansatz.kernels.regression import Evidence, factorise, search

Loss = Callable[[Tensor], Tensor]  # functions (N, Q) -> minus the log-likelihood of each row (N,)

STEPS = 100  # of Newton's method
TOLERANCE = 1e-10  # of the log posterior, relative
FLAT = 1e-10  # the least curvature of a row's loss, where it is not convex


class Curvature(Protocol):
    """What the curvature W of the losses does to the covariance K."""

    log_det: float  # of I + K W

    def solve(self, v: Tensor) -> Tensor:
        """(W^-1 + K)^-1 v, ``(N, Q)``."""
        ...

    def blocks(self, covariance: Tensor) -> Tensor:
        """The posterior covariance of each row's functions, ``(N, Q, Q)``."""
        ...

    def trace(self) -> Tensor:
        """The sum over functions of the diagonal blocks of (W^-1 + K)^-1, ``(N, N)``."""
        ...

    def explained(self, between: Tensor) -> Tensor:
        """k^T (W^-1 + K)^-1 k of each new row, ``(M, Q, Q)``; between is ``(N, M)``."""
        ...


class DiagonalCurvature:
    r"""One function: W is diagonal and :math:`B = I + W^{1/2} K W^{1/2}` is factorised.

    References:
        Rasmussen and Williams (2006), Gaussian Processes for Machine Learning, algorithm 3.1.
    """

    def __init__(self, covariance: Tensor, weight: Tensor) -> None:
        self.root = weight.sqrt()  # (N,)
        inner = self.root[:, None] * covariance * self.root
        inner.diagonal().add_(1.0)
        self.factor = factorise(inner)
        self.log_det = 2 * float(self.factor.diagonal().log().sum())

    def solve(self, v: Tensor) -> Tensor:
        root = self.root[:, None]
        found: Tensor = root * torch.cholesky_solve(root * v, self.factor)
        return found

    def _half(self, between: Tensor) -> Tensor:
        right = self.root[:, None] * between
        found: Tensor = torch.linalg.solve_triangular(self.factor, right, upper=False)
        return found

    def blocks(self, covariance: Tensor) -> Tensor:
        found: Tensor = covariance.diagonal() - (self._half(covariance) ** 2).sum(0)
        return found[:, None, None]

    def trace(self) -> Tensor:
        return self.root[:, None] * torch.cholesky_inverse(self.factor) * self.root

    def explained(self, between: Tensor) -> Tensor:
        return (self._half(between) ** 2).sum(0)[:, None, None]


class ClassCurvature:
    r"""C functions of C classes with one kernel.

    :math:`W_i = w_i (\mathrm{diag}(\pi_i) - \pi_i \pi_i^\top)`. With
    :math:`E_c = (K + (w \pi_c)^{-1})^{-1}` and :math:`M = \sum_c E_c`,

    .. math:: (W^{-1} + K)^{-1}_{cd} = \delta_{cd} E_c - E_c M^{-1} E_d, \qquad
        \log |I + K W| = \sum_c \log |I + K w \pi_c| + \log |M| - \sum_i \log w_i

    (the term with M is missing from some printings of the algorithm).

    References:
        Rasmussen and Williams (2006), Gaussian Processes for Machine Learning, algorithm 3.3.
    """

    def __init__(self, covariance: Tensor, probs: Tensor, weight: Tensor) -> None:
        parts, log_det = [], -float(weight.log().sum())
        for share in probs.T:
            each = DiagonalCurvature(covariance, weight * share)
            parts.append(each.trace())  # E_c
            log_det += each.log_det
        self.parts = torch.stack(parts)  # (C, N, N)
        self.factor = factorise(self.parts.sum(0))
        self.log_det = log_det + 2 * float(self.factor.diagonal().log().sum())

    def solve(self, v: Tensor) -> Tensor:
        own = (self.parts @ v.T[..., None]).squeeze(-1)  # (C, N)
        shared = torch.cholesky_solve(own.sum(0)[:, None], self.factor)  # (N, 1)
        return (own - (self.parts @ shared).squeeze(-1)).T

    def explained(self, between: Tensor) -> Tensor:
        own = self.parts @ between  # (C, N, M)
        half = torch.linalg.solve_triangular(self.factor, own, upper=False)
        shared = torch.einsum("cnm,dnm->mcd", half, half)
        return torch.diag_embed((between * own).sum(1).T) - shared

    def blocks(self, covariance: Tensor) -> Tensor:
        own = torch.diag_embed(covariance.diagonal()[:, None].expand(-1, len(self.parts)))
        return own - self.explained(covariance)

    def trace(self) -> Tensor:
        half = torch.linalg.solve_triangular(self.factor, self.parts, upper=False)
        return self.parts.sum(0) - torch.einsum("cnm,cnk->mk", half, half)


class LatentProcess(NamedTuple):
    r"""Functions with a Gaussian process prior, normal around their mode given outcomes.

    .. math:: f_q \sim GP(0, k), \qquad m(x) = k(x)^\top \nabla \log p(y \mid \hat f), \qquad
        V(x) = k(x, x) I - k(x)^\top (W^{-1} + K)^{-1} k(x)

    Args:
        kernel: k, of all Q functions.
        x: ``(N, D)`` inputs that were seen.
        slope: ``(N, Q)``, the gradient of the log-likelihood at the mode.
        curvature: W, with K.
        mode: ``(N, Q)``.

    Example:
        >>> import torch
        >>> from ansatz.kernels import RBF, approximate
        >>> x, y = torch.tensor([[-1.0], [1.0]]), torch.tensor([-1.0, 1.0])
        >>> found = approximate(RBF(), x, lambda f: torch.nn.functional.softplus(-y * f[:, 0]), 1)
        >>> mean, covariance = found.predict(torch.zeros(1, 1))
        >>> round(mean.item(), 6), covariance.shape
        (0.0, torch.Size([1, 1, 1]))

    References:
        Rasmussen and Williams (2006), Gaussian Processes for Machine Learning, sections 3.4, 3.5.
    """

    kernel: Kernel
    x: Tensor
    slope: Tensor
    curvature: Curvature
    mode: Tensor

    def predict(self, x: Tensor, block: int = 1_024) -> tuple[Tensor, Tensor]:
        """Mean ``(M, Q)`` and covariance ``(M, Q, Q)`` of the functions at rows ``(M, D)``."""
        x = x.double()
        means, covariances = [], []
        for part in x.split(block) if len(x) else (x,):
            between = self.kernel(self.x, part)
            means.append(between.mT @ self.slope)
            own = self.kernel.diagonal(part)[:, None].expand(-1, self.slope.shape[1])
            covariances.append(torch.diag_embed(own) - self.curvature.explained(between))
        return torch.cat(means), torch.cat(covariances)


def slopes(loss: Loss, f: Tensor, *, graph: bool = False) -> tuple[Tensor, Tensor]:
    """The gradient ``(N, Q)`` and, for one function, minus the curvature ``(N,)`` of -loss."""
    with torch.enable_grad():
        f = f if graph else f.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(loss(f).sum(), f, create_graph=True)
        if f.shape[1] > 1:
            return -gradient, f.new_zeros(len(f))
        if gradient.requires_grad:
            (second,) = torch.autograd.grad(
                gradient.sum(), f, create_graph=graph, allow_unused=True
            )
        else:
            second = None
        second = torch.zeros_like(f) if second is None else second
    return -gradient, second[:, 0].clamp(min=FLAT)


def approximate(
    kernel: Kernel,
    x: Tensor,
    loss: Loss,
    functions: int,
    *,
    shift: Tensor | None = None,
    weight: Tensor | None = None,
    start: Tensor | None = None,
) -> LatentProcess:
    r"""The mode of functions under a Gaussian process, by Newton's method with a line search.

    Args:
        kernel: k.
        x: ``(N, D)``.
        loss: minus the log-likelihood of each row at functions ``(N, Q)``, the row's weight in it;
            for Q > 1 that of Q classes, :math:`-w_i \log \mathrm{softmax}(s + f_i)_{y_i}`.
        functions: Q.
        shift: s of the classes, ``(Q,)`` or ``(N, Q)``.
        weight: of the rows, for classes; 1 when not given.
        start: a = K^-1 f to begin at, ``(N, Q)``.

    Example:
        >>> import torch
        >>> from ansatz.kernels import RBF, approximate
        >>> x = torch.zeros(1, 1)  # one count of 3, and a prior N(0, 1) of its logarithm
        >>> found = approximate(RBF(), x, lambda f: f[:, 0].exp() - 3 * f[:, 0], 1)
        >>> round(float(found.mode), 4)  # exp(f) + f = 3
        0.7921
    """
    x = x.double()
    covariance = kernel(x)
    moved = 0.0 if shift is None else shift.double()
    weight = x.new_ones(len(x)) if weight is None else weight.double()

    def value(a: Tensor, f: Tensor) -> float:
        with torch.no_grad():
            return -float(loss(f).sum()) - 0.5 * float((a * f).sum())

    def curved(f: Tensor) -> tuple[Tensor, Tensor, Curvature]:
        """The gradient, W f and the curvature."""
        gradient, second = slopes(loss, f)
        gradient, second = gradient.detach(), second.detach()
        if functions == 1:
            return gradient, second[:, None] * f, DiagonalCurvature(covariance, second)
        probs = (moved + f).softmax(1)
        product = weight[:, None] * (probs * f - probs * (probs * f).sum(1, keepdim=True))
        return gradient, product, ClassCurvature(covariance, probs, weight)

    a = x.new_zeros(len(x), functions) if start is None else start
    f = covariance @ a
    best = value(a, f)
    if start is not None and not best > value(torch.zeros_like(a), torch.zeros_like(f)):
        a, f = torch.zeros_like(a), torch.zeros_like(f)
        best = value(a, f)
    for _ in range(STEPS):
        gradient, product, curvature = curved(f)
        b = product + gradient
        target = b - curvature.solve(covariance @ b)
        step, size = target - a, 1.0
        while True:
            trial = a + size * step
            new = covariance @ trial
            found = value(trial, new)
            if found >= best or size < 1e-6:
                break
            size /= 2
        if not found > best + TOLERANCE * (1 + abs(best)):
            if found >= best:
                a, f, best = trial, new, found
            break
        a, f, best = trial, new, found
    gradient, _, curvature = curved(f)
    if not bool(gradient.isfinite().all()):
        raise NumericalError("the mode of a Gaussian process has a slope that is not finite.")
    return LatentProcess(kernel, x, gradient, curvature, f)


def approximate_evidence(
    kernel: Kernel,
    x: Tensor,
    loss: Loss,
    functions: int,
    *,
    parameters: Sequence[Tensor] = (),
    shift: Tensor | None = None,
    weight: Tensor | None = None,
    start: Tensor | None = None,
) -> tuple[Evidence, LatentProcess]:
    r"""Laplace's approximation of the log evidence, and its gradient.

    .. math:: \log q(y) = \log p(y \mid \hat f) - \tfrac12 \sum_c \hat f_c^\top K^{-1} \hat f_c
        - \tfrac12 \log |I + K W|

    The gradient is in the logarithms of the kernel's parameters, then in ``parameters`` of the
    loss; it counts how the mode moves with them.

    Args:
        kernel: k.
        x: ``(N, D)``.
        loss: see :func:`approximate`.
        functions: Q.
        parameters: tensors that the loss depends on.
        shift: see :func:`approximate`.
        weight: see :func:`approximate`.
        start: see :func:`approximate`.

    Example:
        >>> import torch
        >>> from ansatz.kernels import RBF, approximate_evidence
        >>> loss = lambda f: 0.5 * (1 - f[:, 0]) ** 2  # a normal outcome: exact
        >>> found, _ = approximate_evidence(RBF(), torch.zeros(1, 1), loss, 1)
        >>> round(found.value, 6)  # -1/4 - log(2) / 2
        -0.596574

    References:
        Rasmussen and Williams (2006), Gaussian Processes for Machine Learning, section 5.5.
    """
    found = approximate(kernel, x, loss, functions, shift=shift, weight=weight, start=start)
    f, g, curvature = found.mode, found.slope, found.curvature
    x = found.x
    covariance = kernel(x)
    with torch.no_grad():
        value = -float(loss(f).sum()) - 0.5 * float((g * f).sum()) - 0.5 * curvature.log_det
    blocks = curvature.blocks(covariance)  # (N, Q, Q)
    leaf = f.clone().requires_grad_()
    with torch.enable_grad():
        if functions == 1:
            gradient, second = slopes(loss, leaf, graph=True)
            inner = -0.5 * (blocks[:, 0, 0] * second).sum()
        else:
            gradient, _ = slopes(loss, leaf, graph=True)
            moved = 0.0 if shift is None else shift.double()
            rows = 1.0 if weight is None else weight.double()
            probs = (moved + leaf).softmax(1)
            own = (blocks.diagonal(dim1=1, dim2=2) * probs).sum(1)
            cross = torch.einsum("ncd,nc,nd->n", blocks, probs, probs)
            inner = -0.5 * (rows * (own - cross)).sum()
        third = (
            torch.autograd.grad(inner, leaf, retain_graph=True)[0]
            if inner.requires_grad
            else torch.zeros_like(leaf)
        )
        # How the mode moves: d log q / d f = third, and d f = (I + K W)^-1 dK g.
        u = third - curvature.solve(covariance @ third)
        in_parameters = []
        if parameters:
            moved_by = ((covariance @ u).detach() * gradient).sum()
            explicit = -loss(f.detach()).sum()
            total = explicit + inner + moved_by
            grads = torch.autograd.grad(total, list(parameters), allow_unused=True)
            in_parameters = [
                torch.zeros_like(p) if each is None else each
                for p, each in zip(parameters, grads, strict=True)
            ]
    contraction = 0.5 * (g @ g.mT - curvature.trace()) + 0.5 * (u @ g.mT + g @ u.mT)
    slope = torch.cat(
        [
            kernel.gradient(x, contraction.detach()),
            *(each.detach().double().reshape(-1) for each in in_parameters),
        ]
    )
    return Evidence(value, slope), found


def maximise_approximate_evidence(
    kernel: Kernel,
    x: Tensor,
    loss: Loss,
    functions: int,
    *,
    parameters: Sequence[Tensor] = (),
    shift: Tensor | None = None,
    weight: Tensor | None = None,
    restarts: int = 3,
    steps: int = 50,
    seed: int = 0,
) -> tuple[LatentProcess, float]:
    """The parameters of the kernel and the loss with the largest approximate evidence.

    Args:
        kernel: where to begin.
        x: ``(N, D)``.
        loss: see :func:`approximate`.
        functions: Q.
        parameters: tensors of the loss, which are left at the best values.
        shift: see :func:`approximate`.
        weight: see :func:`approximate`.
        restarts: beginnings, the given one among them.
        steps: of L-BFGS, at most.
        seed: of the beginnings.

    Returns:
        The process at these parameters, and the log evidence.

    Example:
        >>> import torch
        >>> from ansatz.kernels import RBF, maximise_approximate_evidence
        >>> x = torch.linspace(-2, 2, 9)[:, None]
        >>> y = x[:, 0].sign() + (x[:, 0] == 0).float()
        >>> loss = lambda f: torch.nn.functional.softplus(-y * f[:, 0])
        >>> found, value = maximise_approximate_evidence(1.0 * RBF(), x, loss, 1, restarts=1)
        >>> bool(value > -9 * 0.6931)  # better than a coin
        True
    """
    count = len(kernel.vector)
    with torch.no_grad():
        flat = [p.detach().double().reshape(-1) for p in parameters]
    begin = torch.cat([kernel.vector, *flat])
    last: list[Tensor | None] = [None]

    def place(vector: Tensor) -> Kernel:
        with torch.no_grad():
            sizes = [p.numel() for p in parameters]
            for p, part in zip(parameters, vector[count:].split(sizes), strict=True):
                p.copy_(part.reshape(p.shape))
        return kernel.with_vector(vector[:count])

    def function(vector: Tensor) -> Evidence:
        made = place(vector)
        value, process = approximate_evidence(
            made,
            x,
            loss,
            functions,
            parameters=parameters,
            shift=shift,
            weight=weight,
            start=last[0],
        )
        last[0] = process.slope  # a = K^-1 f at the mode
        return value

    best, value = search(function, begin, restarts=restarts, steps=steps, seed=seed)
    found = approximate(place(best), x, loss, functions, shift=shift, weight=weight)
    return found, value
