"""Draws of the coefficients of a linear model, also of those that vary between groups."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ansatz.errors import ModelError, UsageError
from ansatz.fitting.contracts.inference import Build, Composition, Predictive
from ansatz.fitting.contracts.rows import Encoder
from ansatz.fitting.contracts.structure import Structure
from ansatz.fitting.model import Trained
from ansatz.inference.chain_folder import run_state
from ansatz.inference.draws import DrawsPosterior
from ansatz.inference.glm.groups import TermLevels, group_names, new_group
from ansatz.inference.glm.summary import PosteriorSummary

ROWS = 4096  # of a table with groups that are predicted at once
_NUMBERS = "posterior.numbers"


class LinearDraws(DrawsPosterior):
    r"""Draws of a linear model; groups move the linear predictor of each draw.

    .. math:: \eta_{is} = x_i^\top \beta_s + \sum_t x_{it}^\top u_{t, g(i), s}

    A group that the fit has not seen gets coefficients of its own, drawn once for each group and
    draw.

    Args:
        name: of the inference.
        structure: of x.
        encoder: from rows to inputs.
        trained: the linear network at the posterior mean.
        draws: ``(S, W)``, weights that predictions are mixed of.
        terms: what varies between groups.
        effects: of each term, ``(S, G, k)``.
        roots: of each term's covariance, ``(S, k, k)``.
        numbers: ``(C, N, M)``, all draws of the parameters by name.
        options: of the fit.
        state: names, priors, verdict and so on, as JSON.
        others: further tensors that are saved.
    """

    def __init__(
        self,
        name: str,
        structure: Structure,
        encoder: Encoder,
        trained: Trained,
        draws: Tensor,
        terms: Sequence[TermLevels],
        effects: Sequence[Tensor],
        roots: Sequence[Tensor],
        numbers: Tensor,
        options: Mapping[str, Any] | None = None,
        *,
        state: Mapping[str, Any],
        others: Mapping[str, Tensor] | None = None,
    ) -> None:
        super().__init__(
            name, structure, encoder, trained, draws, options, state=state, others=others
        )
        self.terms, self.effects, self.roots = list(terms), list(effects), list(roots)
        self.numbers = numbers

    @property
    def names(self) -> list[str]:
        """Of the M parameters."""
        return list(self.state["names"])

    @property
    def verdict(self) -> Mapping[str, Any] | None:
        """The verdict on the chains; None where there were none."""
        found: Mapping[str, Any] | None = self.state.get("verdict")
        return found

    def summary(self, call: str) -> PosteriorSummary:
        """The estimates as brms prints them."""
        return PosteriorSummary(self, call)

    @property
    def parameters(self) -> int:
        """The parameters, and the coefficients of all groups."""
        varying = sum(effect.shape[1] * effect.shape[2] for effect in self.effects)
        return int(self.numbers.shape[2]) + varying

    def predictive(
        self, rows: Any, offset: Tensor | None = None, *, notes: list[str] | None = None
    ) -> Predictive:
        if not self.terms:
            return super().predictive(rows, offset, notes=notes)
        found = []
        for first in range(0, max(len(rows), 1), ROWS):
            part = rows[first : first + ROWS]
            own = None if offset is None else offset[first : first + ROWS]
            moved = self._moved(part, own)
            (inputs,) = self.encoder.inputs(part, notes=notes)
            found.append(self._served((inputs,), moved))
        return Predictive(self.likelihood, torch.cat(found))

    def _served(self, inputs: tuple[Tensor, ...], moved: Tensor) -> Tensor:
        return self.combination.serve(list(self._raws(inputs, moved)))

    def _raws(self, inputs: tuple[Tensor, ...], moved: Tensor) -> Tensor:
        with torch.no_grad():
            raws = self.weights.raws(self.draws, inputs, None).double()  # (S, B, P)
        raws[..., 0] += moved
        return raws

    def _moved(self, rows: Any, offset: Tensor | None) -> Tensor:
        """What groups and the offset add to the linear predictor, ``(S, B)``."""
        frame = rows.named
        total = torch.zeros(len(self.draws), len(frame), dtype=torch.float64)
        if offset is not None:
            total += offset.double().reshape(-1)
        seed = int(self.state["seed"])
        for each, effect, root in zip(self.terms, self.effects, self.roots, strict=True):
            codes, values = each.rows(frame)
            places = torch.from_numpy(codes)
            u = effect[:, places.clamp(min=0)]  # (S, B, k)
            new = np.flatnonzero(codes < 0)
            if len(new):
                _, names = group_names(each.term, frame)
                known: dict[str, Tensor] = {}
                for row in new.tolist():
                    # A row without a group is one of a group of its own.
                    name = f"{each.term}: {names[row]}"
                    if name not in known:
                        known[name] = new_group(name, root, seed)
                    u[:, row] = known[name]
            total += (u * torch.from_numpy(values)).sum(-1)
        return total

    def components(self, rows: Any, offset: Tensor | None = None) -> list[tuple[float, Predictive]]:
        if not self.terms:
            return super().components(rows, offset)
        inputs = self.encoder.inputs(rows, notes=[])
        raws = self._raws(inputs, self._moved(rows, offset))
        pairs = zip(self.combination.likelihoods, raws, strict=True)
        parts = [Predictive(likelihood, raw) for likelihood, raw in pairs]
        if self.combination.merged:
            parts = [self.combination.of_member(part) for part in parts]
        return [(1 / len(parts), part) for part in parts]

    def composition(self, kind: torch.dtype) -> Composition:
        if self.terms:
            raise UsageError(
                "a model with terms that vary between groups cannot be exported: a graph has no "
                "new groups."
            )
        return super().composition(kind)

    def answers(self, rows: Any) -> list[str]:
        """Which question the scores of such rows answer: about known groups, or about new ones."""
        found, seen = [], set()
        for each in self.terms:
            if each.term.group in seen:
                continue
            seen.add(each.term.group)
            codes, _ = each.rows(rows.named)
            known, name = int((codes >= 0).sum()), each.term.label
            what = f"the scores are about new rows of known groups (new ones: --group {name})"
            if not known:
                what = "the scores are about new groups"
            elif known < len(codes):
                what = "the scores mix known and new groups"
            of = f"{known:,} of {len(codes):,} test rows are of groups that training has seen"
            found.append(f"{name}: {of}; {what}.")
        return found

    @property
    def drawn(self) -> int:
        """Draws of each chain; 0 where there were no chains."""
        return int(self.state.get("sampler", {}).get("draws", 0))

    def run_state(self) -> dict[str, Any]:
        """The state of the chains, so that they can go on."""
        return run_state(self.others)

    def tensors(self) -> dict[str, Tensor]:
        found = {**super().tensors(), _NUMBERS: self.numbers}
        for k, (effect, root) in enumerate(zip(self.effects, self.roots, strict=True)):
            found |= {f"posterior.effects.{k}": effect, f"posterior.roots.{k}": root}
        return found

    def record(self) -> dict[str, Any]:
        return {**super().record(), "terms": [each.record() for each in self.terms]}


def is_of_linear(record: Mapping[str, Any]) -> bool:
    """Whether a record is that of :class:`LinearDraws`."""
    return "terms" in record


def rebuild_linear_draws(
    name: str,
    structure: Structure,
    encoder: Encoder,
    record: Mapping[str, Any],
    tensors: Mapping[str, Tensor],
    build: Build,
) -> LinearDraws:
    """The posterior of a saved linear model."""
    own = {n: t for n, t in tensors.items() if n.startswith(("network.", "objective."))}
    terms = [TermLevels.load(each) for each in record["terms"]]
    try:
        draws, numbers = tensors["draws"], tensors[_NUMBERS]
        effects = [tensors[f"posterior.effects.{k}"] for k in range(len(terms))]
        roots = [tensors[f"posterior.roots.{k}"] for k in range(len(terms))]
    except KeyError as missing:
        raise ModelError(f"the posterior lacks {missing}.") from None
    if numbers.ndim != 3 or numbers.shape[2] != len(record["names"]):
        raise ModelError("the draws of the parameters do not fit their names.")
    others = {n: t for n, t in tensors.items() if n.startswith("run.")}
    state = {n: value for n, value in record.items() if n not in ("draws", "terms")}
    return LinearDraws(
        *(name, structure, encoder, build(own), draws, terms, effects, roots, numbers),
        state=state,
        others=others,
    )
