"""Scores of the entities that may complete (head, relation, ?): bilinear forms and translations."""

import torch
from torch import Tensor, nn

from ansatz.errors import UsageError
from ansatz.spec import Inputs, InputSpec

RULED_OUT = -1e4  # the score of an entity that is known to be another answer


class TripleNetwork(nn.Module):
    """Embeds entities and relations, and scores each entity as the answer of a query.

    A subclass gives ``queries``: the vectors q of which ``answers`` makes the scores.
    """

    def __init__(
        self,
        inputs: Inputs,
        outputs: int,
        *,
        width: int = 128,
        dropout: float = 0.3,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        spec = InputSpec.of(inputs)
        if len(spec.cardinalities) != 2 or spec.cardinalities[0] != outputs:
            raise UsageError(
                f"{type(self).__name__} scores the entities of triples: it needs the numbers of "
                f"entities and relations, and as many outputs as entities; got {spec}."
            )
        if width < 2 or width % 2:
            raise UsageError(f"width must be an even number from 2 on, got {width}.")
        self.entities = nn.Embedding(outputs, width)
        self.relations = nn.Embedding(spec.cardinalities[1], width)
        self.dropout = nn.Dropout(dropout)
        for table in (self.entities, self.relations):
            nn.init.normal_(table.weight, std=width**-0.5, generator=generator)

    def queries(self, head: Tensor, relation: Tensor) -> Tensor:
        """The vector of each query from those of its entity and relation, ``(B, D)``."""
        raise TypeError(f"{type(self).__name__} does not define its queries.")

    def answers(self, query: Tensor) -> Tensor:
        """The score of each entity, ``(B, E)``."""
        return query @ self.entities.weight.T

    def forward(self, codes: Tensor, without: Tensor | None = None) -> Tensor:
        """Scores all entities for queries ``(B, 2)`` of entity and relation: ``(B, E)``.

        Entities that are marked in ``without``, ``(B, E)``, are ruled out.
        """
        head, relation = self.entities(codes[:, 0]), self.relations(codes[:, 1])
        scores = self.answers(self.dropout(self.queries(head, relation)))
        return scores if without is None else scores.masked_fill(without, RULED_OUT)


class Dot(TripleNetwork):
    r"""The inner product of two entities, moved by the relation: the plainest decoder.

    .. math:: s(h, r, t) = \langle e_h + w_r, e_t \rangle

    Args:
        inputs: the numbers of entities and of relations, ``cardinalities=(E, R)``.
        outputs: the number of entities, E.
        width: numbers of an embedding, D.
        dropout: share of a query's numbers dropped in training.
        generator: of the initial weights.

    Shapes:
        - codes: ``(B, 2)`` of entity and relation.
        - returns: ``(B, E)``.

    Example:
        >>> from ansatz.networks import Dot
        >>> from ansatz.spec import InputSpec
        >>> network = Dot(InputSpec("triples", cardinalities=(5, 4)), 5, width=8)
        >>> network(torch.tensor([[0, 1], [3, 2]])).shape
        torch.Size([2, 5])
    """

    def queries(self, head: Tensor, relation: Tensor) -> Tensor:
        """e_h + w_r."""
        return head + relation


class DistMult(TripleNetwork):
    r"""A diagonal bilinear form for each relation.

    .. math:: s(h, r, t) = \sum_d e_{hd} \, w_{rd} \, e_{td}

    It is symmetric in h and t; relations read backwards have weights of their own.

    Args:
        inputs: the numbers of entities and of relations, ``cardinalities=(E, R)``.
        outputs: the number of entities, E.
        width: numbers of an embedding, D.
        dropout: share of a query's numbers dropped in training.
        generator: of the initial weights.

    Shapes:
        - codes: ``(B, 2)`` of entity and relation.
        - returns: ``(B, E)``.

    Example:
        >>> from ansatz.networks import DistMult
        >>> from ansatz.spec import InputSpec
        >>> network = DistMult(InputSpec("triples", cardinalities=(5, 4)), 5, width=8)
        >>> network(torch.tensor([[0, 1], [3, 2]])).shape
        torch.Size([2, 5])

    References:
        Yang et al. (2015), Embedding entities and relations. https://arxiv.org/abs/1412.6575
    """

    def __init__(
        self,
        inputs: Inputs,
        outputs: int,
        *,
        width: int = 128,
        dropout: float = 0.3,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(inputs, outputs, width=width, dropout=dropout, generator=generator)
        nn.init.normal_(self.relations.weight, generator=generator)

    def queries(self, head: Tensor, relation: Tensor) -> Tensor:
        """The product of both, element by element."""
        return head * relation


class ComplEx(DistMult):
    r"""A diagonal bilinear form over the complex numbers, which need not be symmetric.

    .. math:: s(h, r, t) = \operatorname{Re} \sum_d e_{hd} \, w_{rd} \, \overline{e_{td}}

    The first half of an embedding holds the real parts, the second the imaginary ones.

    Args:
        inputs: the numbers of entities and of relations, ``cardinalities=(E, R)``.
        outputs: the number of entities, E.
        width: real numbers of an embedding, D; twice the number of complex ones.
        dropout: share of a query's numbers dropped in training.
        generator: of the initial weights.

    Shapes:
        - codes: ``(B, 2)`` of entity and relation.
        - returns: ``(B, E)``.

    Example:
        >>> from ansatz.networks import ComplEx
        >>> from ansatz.spec import InputSpec
        >>> network = ComplEx(InputSpec("triples", cardinalities=(5, 4)), 5, width=8)
        >>> network(torch.tensor([[0, 1], [3, 2]])).shape
        torch.Size([2, 5])

    References:
        Trouillon et al. (2016), Complex embeddings for simple link prediction, eq. 11.
        https://arxiv.org/abs/1606.06357; Lacroix et al. (2018), Canonical tensor decomposition,
        for relations read backwards. https://arxiv.org/abs/1806.07297
    """

    def queries(self, head: Tensor, relation: Tensor) -> Tensor:
        """The complex product of both: Re <q, conj(e_t)> is then a real inner product."""
        (a, b), (c, d) = head.chunk(2, -1), relation.chunk(2, -1)
        return torch.cat([a * c - b * d, a * d + b * c], -1)


class TransE(TripleNetwork):
    r"""A relation is a translation of entities in space.

    .. math:: s(h, r, t) = -\gamma \, \| e_h + w_r - e_t \|_2

    with a :math:`\gamma > 0` that is trained.

    Args:
        inputs: the numbers of entities and of relations, ``cardinalities=(E, R)``.
        outputs: the number of entities, E.
        width: numbers of an embedding, D.
        dropout: share of a query's numbers dropped in training.
        generator: of the initial weights.

    Shapes:
        - codes: ``(B, 2)`` of entity and relation.
        - returns: ``(B, E)``.

    Example:
        >>> from ansatz.networks import TransE
        >>> from ansatz.spec import InputSpec
        >>> network = TransE(InputSpec("triples", cardinalities=(5, 4)), 5, width=8)
        >>> bool((network(torch.tensor([[0, 1], [3, 2]])) <= 0).all())
        True

    References:
        Bordes et al. (2013), Translating embeddings for modeling multi-relational data.
    """

    def __init__(
        self,
        inputs: Inputs,
        outputs: int,
        *,
        width: int = 128,
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(inputs, outputs, width=width, dropout=dropout, generator=generator)
        self.log_gamma = nn.Parameter(torch.full((), 5.0).log())

    def queries(self, head: Tensor, relation: Tensor) -> Tensor:
        """e_h + w_r."""
        return head + relation

    def answers(self, query: Tensor) -> Tensor:
        """Minus the distance to each entity, times gamma."""
        return -self.log_gamma.exp() * torch.cdist(query, self.entities.weight)


class TailFrequencies(nn.Module):
    r"""A table of scores for each relation, whatever the entity: the linear model of triples.

    .. math:: s(h, r, t) = W_{rt}

    Args:
        inputs: the numbers of entities and of relations, ``cardinalities=(E, R)``.
        outputs: the number of entities, E.
        generator: not used: all scores begin at 0.

    Shapes:
        - codes: ``(B, 2)`` of entity and relation.
        - returns: ``(B, E)``.

    Example:
        >>> from ansatz.networks import TailFrequencies
        >>> from ansatz.spec import InputSpec
        >>> network = TailFrequencies(InputSpec("triples", cardinalities=(5, 4)), 5)
        >>> network(torch.tensor([[0, 1], [3, 2]])).shape
        torch.Size([2, 5])
    """

    def __init__(
        self, inputs: Inputs, outputs: int, *, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        spec = InputSpec.of(inputs)
        if len(spec.cardinalities) != 2:
            raise UsageError(f"tail_frequencies is for triples, not for {spec}.")
        self.scores = nn.Embedding(spec.cardinalities[1], outputs)
        nn.init.zeros_(self.scores.weight)

    def forward(self, codes: Tensor, without: Tensor | None = None) -> Tensor:
        """The scores of the relation of each query, ``(B, E)``."""
        found: Tensor = self.scores(codes[:, 1])
        return found if without is None else found.masked_fill(without, RULED_OUT)
