"""What a network says in the place of R's coefficient table."""

import html
from collections.abc import Sequence
from typing import Any

from ansatz.linear.effects import Effect
from ansatz.linear.table import align, format_column, plain


class NetworkSummary:
    """A fitted network: held-out deviance explained and average marginal effects.

    A deep network has no AIC and no in-sample deviance test: its parameters are more than the
    rows can tell apart, and it was stopped, not maximised. The two numbers here mean something.

    Args:
        call: what the user asked for.
        likelihood: the likelihood's name.
        link: its link.
        network: the network in words.
        effects: of :func:`ansatz.linear.average_marginal_effects`.
        deviance_explained: 1 - deviance / deviance of the constant model, on rows that took no
            part in the fit; None if there were none.
        held_out: how many rows that was.
        parameters: number of weights.
        refits: how many bootstrap refits the intervals come from; 0 for no intervals.
        level: of the intervals.
        class_names: names of the K classes, where there are some.
        rows_dropped: rows that were left out for missing values before the fit.
        messages: further sentences.

    Example:
        >>> from ansatz.linear import Effect, NetworkSummary
        >>> effects = [Effect("age", "per unit", 0.5, 0.4, 0.6, None)]
        >>> print(NetworkSummary(call="y ~ age", likelihood="normal", link="identity",
        ...     network="mlp 2 x 128", effects=effects, deviance_explained=0.61, held_out=90,
        ...     parameters=17000, refits=20))
        Call: y ~ age
        <BLANKLINE>
        Likelihood: normal, link identity
        Network: mlp 2 x 128, 17000 parameters
        <BLANKLINE>
        Average marginal effects on the predicted mean:
                      Effect   Lower   Upper
        age per unit 0.50000 0.40000 0.60000
        Intervals: 95 % percentile intervals over 20 bootstrap refits.
        Effects describe the model's predictions; they are not causal by themselves.
        <BLANKLINE>
        Held-out deviance explained: 61.0 % (90 rows)
    """

    def __init__(
        self,
        *,
        call: str,
        likelihood: str,
        link: str,
        network: str,
        effects: Sequence[Effect],
        deviance_explained: float | None,
        held_out: int,
        parameters: int,
        refits: int = 0,
        level: float = 0.95,
        class_names: Sequence[str] | None = None,
        rows_dropped: int = 0,
        messages: Sequence[str] = (),
    ) -> None:
        self.call, self.likelihood, self.link, self.network = call, likelihood, link, network
        self.effects, self.deviance_explained = list(effects), deviance_explained
        self.held_out, self.parameters, self.refits = held_out, parameters, refits
        self.level, self.class_names = level, class_names
        self.rows_dropped, self.messages = rows_dropped, list(messages)

    def __str__(self) -> str:
        blocks = [
            [f"Call: {plain(self.call)}"],
            [
                f"Likelihood: {self.likelihood}, link {self.link}",
                f"Network: {plain(self.network)}, {self.parameters} parameters",
            ],
            self._effects(),
            [self._explained()],
            [f"({self.rows_dropped} rows with missing values dropped)"]
            if self.rows_dropped
            else [],
            [f"Note: {plain(message)}" for message in self.messages],
        ]
        return "\n\n".join("\n".join(block) for block in blocks if block)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f'<pre class="ansatz-summary">{html.escape(str(self))}</pre>'

    def _explained(self) -> str:
        if self.deviance_explained is None:
            return "Held-out deviance explained: no rows were held out"
        return (
            f"Held-out deviance explained: {100 * self.deviance_explained:.1f} % "
            f"({self.held_out} rows)"
        )

    def _effects(self) -> list[str]:
        if not self.effects:
            return []
        names = [self._label(effect) for effect in self.effects]
        columns = [format_column([effect.estimate for effect in self.effects])]
        header = ["", "Effect"]
        if self.refits:
            header += ["Lower", "Upper"]
            for end in ("lower", "upper"):
                ends = [getattr(effect, end) for effect in self.effects]
                columns.append(format_column([float("nan") if e is None else e for e in ends]))
        rows = [list(row) for row in zip(names, *columns, strict=True)]
        text = (
            f"Intervals: {100 * self.level:g} % percentile intervals over {self.refits} "
            "bootstrap refits."
            if self.refits
            else "No intervals: they need bootstrap refits."
        )
        return [
            "Average marginal effects on the predicted mean:",
            *align(header, rows),
            text,
            "Effects describe the model's predictions; they are not causal by themselves.",
        ]

    def _label(self, effect: Effect) -> str:
        label = f"{effect.name} {effect.contrast}"
        if effect.output is not None:
            names = self.class_names
            label += f" [{names[effect.output] if names else effect.output}]"
        return plain(label)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers and strings."""
        return {
            "call": self.call,
            "likelihood": self.likelihood,
            "link": self.link,
            "network": self.network,
            "parameters": self.parameters,
            "deviance_explained": self.deviance_explained,
            "held_out": self.held_out,
            "effects": [effect._asdict() for effect in self.effects],
            "intervals": f"percentile over {self.refits} bootstrap refits" if self.refits else None,
            "level": self.level if self.refits else None,
            "rows_dropped": self.rows_dropped,
            "messages": self.messages,
        }
