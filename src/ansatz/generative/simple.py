"""The simple generators that stand beside every other: independent columns, copula, PPCA."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from ansatz.errors import UsageError
from ansatz.generative.coding import Coding
from ansatz.generative.contract import Density, Examples, Generator
from ansatz.generative.marginal import Marginals
from ansatz.generative.normal_law import NormalLaw, covariance_of, log_probability

if TYPE_CHECKING:
    from ansatz.fitting.task import TrainingPlan

ROWS = 20_000  # whose values make the marginal distributions and covariances of grids
DRAWS = 8  # of the places of levels and atoms within their intervals
SWEEPS = 20  # over the columns, that place levels and atoms given the others
LOADING = 1e-6  # share of the variance that is added to a singular covariance


class _Scored(Generator):
    """Normal scores of all columns; those given are conditioned on."""

    bends: ClassVar[bool] = True
    dependent: ClassVar[bool] = True

    def __init__(self) -> None:
        self.options: dict[str, Any] = {}

    def _law(self, z: Tensor, weight: Tensor) -> NormalLaw:
        raise TypeError(f"{type(self).__name__} does not define its distribution.")

    def fit(self, examples: Examples, held_out: Examples | None, plan: "TrainingPlan") -> None:
        both = _joined(examples.codes, examples.given)
        weight = examples.weight.double()
        if examples.codes.ndim > 2 and len(both) > ROWS:
            both, weight = both[:ROWS], weight[:ROWS]
        kinds = list(examples.coding.kinds)
        if examples.given_coding is not None:
            kinds += examples.given_coding.kinds
        self.coding, self.given_coding = examples.coding, examples.given_coding
        self.marginals = Marginals.fit(both, weight, kinds, bend=self.bends)
        rng = torch.Generator().manual_seed(plan.seed)
        z, _ = self.marginals.scores(both, rng)
        self.law = self._law(z, weight)
        if self.dependent and examples.codes.ndim == 2 and not self.marginals.is_exact:
            self._settle(both[:ROWS], weight[:ROWS], z[:ROWS], rng)

    def _settle(self, codes: Tensor, weight: Tensor, z: Tensor, rng: torch.Generator) -> None:
        """Draws places within intervals given the other columns, and estimates anew.

        Places that are drawn by themselves know nothing of the other columns: correlations would
        come out too small.
        """
        ends = self.marginals.intervals(codes)
        z = torch.where(z.isnan(), 0.0, z)
        means, covariances = [], []
        for sweep in range(SWEEPS):
            z = within_intervals(self.law, z, *ends, rng)
            self.law = self._law(z, weight)
            if sweep >= SWEEPS // 2:
                means.append(self.law.mean)
                covariances.append(self.law.covariance)
        self.law = NormalLaw(torch.stack(means).mean(0), torch.stack(covariances).mean(0))

    @property
    def _size(self) -> int:
        return len(self.coding.kinds)

    @property
    def parameters(self) -> int:
        size = self._size
        return size * (size + 1) // 2

    def _scores(
        self, codes: Tensor, given: Tensor | None, rng: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """Scores of x and of what is given, drawn within their intervals."""
        z, volume = self._of_x.scores(codes, rng)
        if self.given_coding is None:
            return z, volume
        return torch.cat([z, self._given_scores(given, len(codes), rng)], 1), volume

    def _given_scores(self, given: Tensor | None, count: int, rng: torch.Generator) -> Tensor:
        if self.given_coding is None:
            return torch.empty(count, 0, dtype=torch.float64)
        if given is None:
            return torch.full((count, len(self.given_coding.kinds)), math.nan).double()
        laws, linear = self.marginals.laws[self._size :], self.marginals.linear[self._size :]
        return Marginals(laws, linear).scores(given, rng)[0]

    @property
    def _of_x(self) -> Marginals:
        return Marginals(self.marginals.laws[: self._size], self.marginals.linear[: self._size])

    def _codes(self, z: Tensor) -> Tensor:
        return self.coding.shaped(self._of_x.codes(z[:, : self._size]))

    def sample(self, count: int, given: Tensor | None, rng: torch.Generator) -> Tensor:
        if self.given_coding is None:
            return self._codes(self.law.sample(count, rng))
        known = self._given_scores(given, count, rng)
        blank = torch.full((count, self._size), math.nan).double()
        return self._codes(self.law.draw(torch.cat([blank, known], 1), rng))

    def log_density(
        self, codes: Tensor, given: Tensor | None, rng: torch.Generator, *, draws: int = DRAWS
    ) -> Density:
        draws = 1 if self.marginals.is_exact or codes.ndim > 2 else max(draws, 1)
        low, high, added = self.marginals.measured(self._with_given(codes, given))
        terms = torch.stack([log_probability(self.law, low, high, rng) for _ in range(draws)])
        found = averaged(terms + added[:, : self._size].sum(1))
        if self.given_coding is None:
            return found
        low[:, : self._size], high[:, : self._size] = -math.inf, math.inf
        terms = torch.stack([log_probability(self.law, low, high, rng) for _ in range(draws)])
        of_given = averaged(terms)
        error = (found.error.square() + of_given.error.square()).sqrt()
        return Density(found.value - of_given.value, error)

    def _with_given(self, codes: Tensor, given: Tensor | None) -> Tensor:
        if self.given_coding is None:
            return _joined(codes, None)
        if given is None:
            given = torch.full((len(codes), len(self.given_coding.kinds)), math.nan)
        return _joined(codes, given)

    def impute(self, codes: Tensor, given: Tensor | None, rng: torch.Generator) -> Tensor:
        z, _ = self._scores(codes, given, rng)
        z = self.law.draw(z, rng)
        if self.dependent and not self.marginals.is_exact and codes.ndim == 2:
            ends = self.marginals.intervals(_joined(codes, given))
            for _ in range(SWEEPS // 2):
                z = within_intervals(self.law, z, *ends, rng)
        drawn = self._codes(z)
        return torch.where(codes.isnan(), drawn, codes)

    def record(self) -> dict[str, Any]:
        return {"marginals": self.marginals.record()}

    def tensors(self) -> dict[str, Tensor]:
        return {"mean": self.law.mean.contiguous(), "covariance": self.law.covariance.contiguous()}

    def load(
        self,
        coding: Coding,
        given_coding: Coding | None,
        record: Mapping[str, Any],
        tensors: Mapping[str, Tensor],
    ) -> None:
        self.coding, self.given_coding = coding, given_coding
        self.marginals = Marginals.load(record["marginals"])
        self.law = NormalLaw(tensors["mean"], tensors["covariance"])


class Independent(_Scored):
    r"""Columns that know nothing of each other: :math:`p(x) = \prod_j f_j(x_j)`.

    Each column has the histogram of its values, atoms where a value fills a fifth of it, and the
    shares of its levels. What is given changes nothing.

    Example:
        >>> import ansatz
        >>> table = {"a": [1.5, 2.0, 3.5, 4.0] * 5, "b": list("uvvv") * 5}
        >>> model = ansatz.Synthesizer("independent").fit(table)
        >>> sorted(set(model.sample(50, seed=0)["b"]))
        ['u', 'v']
    """

    name: ClassVar[str] = "independent"
    dependent: ClassVar[bool] = False

    def _law(self, z: Tensor, weight: Tensor) -> NormalLaw:
        size = z.shape[1]
        return NormalLaw(torch.zeros(size).double(), torch.eye(size).double())

    @property
    def parameters(self) -> int:
        return sum(len(law.masses) + len(law.shares) for law in self._of_x.laws)


class Copula(_Scored):
    r"""A normal copula: histograms of the columns, and the correlation R of their normal scores.

    .. math:: p(x) = N(z; 0, R) \prod_j \frac{f_j(x_j)}{\varphi(z_j)}, \qquad
              z_j = \Phi^{-1}(F_j(x_j))

    Missing values are integrated over; imputation draws from the conditional one of the
    scores. A level is an interval of scores, as in an ordered probit model.

    Example:
        >>> import ansatz
        >>> table = {"a": [1.5, 2.0, 3.5, 4.0] * 5, "b": [1.0, 2.0, 2.5, 4.0] * 5}
        >>> drawn = ansatz.Synthesizer("copula").fit(table).sample(200, seed=0)
        >>> bool(drawn.corr()["a"]["b"] > 0.5)
        True

    References:
        Hoff (2007), Extending the rank likelihood for semiparametric copula estimation.
        https://doi.org/10.1214/07-AOAS107
    """

    name: ClassVar[str] = "copula"

    def _law(self, z: Tensor, weight: Tensor) -> NormalLaw:
        mean, covariance = covariance_of(z, weight)
        scale = covariance.diagonal().clamp(min=1e-12).rsqrt()
        correlation = covariance * scale.unsqueeze(1) * scale
        loading = LOADING + len(correlation) / (len(z) + 10 * len(correlation)) * 0.05
        eye = torch.eye(len(correlation)).double()
        return NormalLaw(torch.zeros_like(mean), (1 - loading) * correlation + loading * eye)


class ProbabilisticPCA(_Scored):
    r"""Probabilistic principal components: a linear map of few normal latents, and even noise.

    .. math:: x = W u + \mu + \varepsilon, \quad W = U_L (\Lambda_L - \sigma^2 I)^{1/2}, \quad
              \sigma^2 = \frac{1}{D - L} \sum_{j > L} \lambda_j

    in closed form from the eigenvalues :math:`\lambda` of the covariance: the optimum of a linear
    variational autoencoder. Numbers are standardised; levels and columns with atoms are normal
    scores, as in :class:`Copula`.

    Args:
        latents: L; None takes the best by BIC.

    Example:
        >>> import ansatz
        >>> table = {"a": [1.5, 2.0, 3.5, 4.1] * 5, "b": [1.0, 2.0, 2.5, 4.0] * 5}
        >>> model = ansatz.Synthesizer("ppca", generator_options={"latents": 1}).fit(table)
        >>> model.transform(table).shape
        (20, 1)

    References:
        Tipping and Bishop (1999), Probabilistic principal component analysis, eqs. 7 and 8.
        https://doi.org/10.1111/1467-9868.00196
    """

    name: ClassVar[str] = "ppca"
    has_latents: ClassVar[bool] = True
    bends: ClassVar[bool] = False

    def __init__(self, *, latents: int | None = None) -> None:
        if latents is not None and latents < 1:
            raise UsageError(f"latents of ppca must be 1 or more, got {latents}.")
        self.options = {} if latents is None else {"latents": latents}
        self.latents = latents

    def _law(self, z: Tensor, weight: Tensor) -> NormalLaw:
        mean, covariance = covariance_of(z, weight)
        values, vectors = torch.linalg.eigh(covariance)
        values, vectors = values.flip(0).clamp(min=1e-9), vectors.flip(1)
        size = len(values)
        if self.latents is not None and self.latents >= max(size, 2):
            raise UsageError(f"ppca: {self.latents} latents are too many for {size} columns.")
        count = self.latents or best_dimension(values, float(weight.sum()))
        noise = float(values[count:].mean()) if count < size else LOADING
        self.map = vectors[:, :count] * (values[:count] - noise).clamp(min=0).sqrt()
        self.noise = noise
        eye = torch.eye(size).double()
        return NormalLaw(mean, self.map @ self.map.T + noise * eye)

    @property
    def parameters(self) -> int:
        return int(self.map.numel() + len(self.map) + 1)

    def encode(self, codes: Tensor, given: Tensor | None) -> Tensor:
        """E[u | x] = (W'W + s^2 I)^-1 W' (x - mu), missing values at their expectation."""
        low, high = self.marginals.intervals(self._with_given(codes, given))
        z = torch.where(torch.isinf(low), math.nan, (low + high) / 2)
        rest = self.law.expected(z) - self.law.mean
        gram = self.map.T @ self.map + self.noise * torch.eye(self.map.shape[1]).double()
        latents: Tensor = torch.linalg.solve(gram, self.map.T @ rest.T).T
        return latents

    def decode(self, latents: Tensor, given: Tensor | None) -> Tensor:
        return self._codes(self.law.mean + latents.double() @ self.map.T)

    def tensors(self) -> dict[str, Tensor]:
        noise = torch.tensor([self.noise]).double()
        return {**super().tensors(), "map": self.map.contiguous(), "noise": noise}

    def load(
        self,
        coding: Coding,
        given_coding: Coding | None,
        record: Mapping[str, Any],
        tensors: Mapping[str, Tensor],
    ) -> None:
        super().load(coding, given_coding, record, tensors)
        self.map, self.noise = tensors["map"], float(tensors["noise"])


def best_dimension(values: Tensor, rows: float) -> int:
    r"""The number of principal components with the least BIC, from eigenvalues in descending order.

    .. math:: -\frac{N}{2} \Big(\sum_{j \le L} \log \lambda_j + (D - L) \log \sigma^2\Big)
    """
    size = len(values)
    best, least = 1, math.inf
    for count in range(1, size):
        noise = values[count:].mean()
        fit = rows * (values[:count].log().sum() + (size - count) * noise.log())
        free = size * count - count * (count - 1) / 2 + 1
        criterion = float(fit) + free * math.log(max(rows, 2))
        if criterion < least:
            best, least = count, criterion
    return best


def within_intervals(
    law: NormalLaw, z: Tensor, low: Tensor, high: Tensor, rng: torch.Generator
) -> Tensor:
    """One Gibbs sweep: each score is drawn given the others of its row, within its interval."""
    precision = torch.linalg.inv(law.covariance)
    z = z.clone()
    rest = z - law.mean
    for j in range(z.shape[1]):
        rows = (high[:, j] > low[:, j]).nonzero().squeeze(1)
        if not len(rows):
            continue
        own = precision[j, j]
        centre = rest[rows] @ precision[j] - own * rest[rows, j]
        mean, scale = law.mean[j] - centre / own, own.rsqrt()
        ends = [torch.special.ndtr((each[rows, j] - mean) / scale) for each in (low, high)]
        draw = torch.rand(len(rows), generator=rng, dtype=z.dtype)
        u = (ends[0] + draw * (ends[1] - ends[0])).clamp(1e-12, 1 - 1e-12)
        value = mean + scale * torch.special.ndtri(u)
        value = torch.minimum(torch.maximum(value, low[rows, j]), high[rows, j])
        z[rows, j], rest[rows, j] = value, value - law.mean[j]
    return z


def averaged(terms: Tensor) -> Density:
    """The logarithm of the mean of densities over draws, ``(S, N)``, with its standard error."""
    count = len(terms)
    value = terms.logsumexp(0) - math.log(count)
    if count == 1:
        return Density(value, torch.zeros_like(value))
    ratio = (terms - value).exp()
    return Density(value, ratio.std(0) / count**0.5)


def _joined(codes: Tensor, given: Tensor | None) -> Tensor:
    flat = codes.double().reshape(len(codes), -1)
    return flat if given is None else torch.cat([flat, given.double()], 1)
