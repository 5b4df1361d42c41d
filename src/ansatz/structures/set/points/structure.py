"""Point clouds: sets whose elements have coordinates; their pose may not matter."""

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from numpy.typing import NDArray
from torch import nn

from ansatz.data import Batch
from ansatz.data.points.clouds import Clouds
from ansatz.data.sets.sets import Sets
from ansatz.fitting.column_roles import ColumnRoles
from ansatz.fitting.contracts.structure import Facts, Feed
from ansatz.fitting.recipe import SMALL, Recipe
from ansatz.fitting.tensor_structure import Read
from ansatz.layers.ragged import rows_of
from ansatz.spec import InputSpec
from ansatz.structures.set.points.encoder import PointEncoder, load_encoder
from ansatz.structures.set.points.reading import read_clouds
from ansatz.structures.set.structure import SetStructure
from ansatz.symmetry import Group, Permutation, RigidMotion, haar_orthogonal

JITTER = 0.01  # of the root mean square radius: Qi et al. (2017), section 5.1
PASSES = 60  # over the training clouds at most
LARGE = 10_000  # clouds from which on a network has the width of the paper


class PointStructure(SetStructure):
    """Points of clouds, one cloud behind the other; a network's inputs are those of sets."""

    name: ClassVar[str] = "points"
    unit: ClassVar[tuple[str, str]] = ("cloud", "clouds")
    rows_of: ClassVar[type[Sets]] = Clouds
    elements_at_once: ClassVar[int] = 2**13

    def network(self, axis: str) -> str:
        """PointNet."""
        return "pointnet"

    def linear_network(self, axis: str) -> str:
        """A linear map of the covariance spectrum and quantiles of the radius."""
        return "linear_points"

    def network_options(
        self, network: str | nn.Module, recipe: Recipe, spec: InputSpec | None
    ) -> dict[str, Any]:
        """The width of a PointNet, by the number of clouds."""
        return {"width": recipe.widths[0]} if network == "pointnet" else {}

    def read(self, data: Any, column_roles: ColumnRoles, reader: Mapping[str, Any]) -> Read:
        """Folders by class, tables of paths, arrays, the named solids."""
        found = read_clouds(data, reader)
        return super().read(data, column_roles, reader) if found is None else found

    def recipe(self, facts: Facts) -> Recipe:
        """Some 60 passes in batches of 32 clouds; half the width of the paper for few clouds."""
        base = super().recipe(facts)
        of_points = facts.spec is not None and facts.spec.rows == "elements"
        if facts.rows < SMALL or facts.coupled:
            return base.model_copy(update={"dtype": "float32", "widths": (32,)})
        size = 4_096 if of_points else 32
        return base.model_copy(
            update={
                "widths": (64,) if facts.rows >= LARGE else (32,),
                "batch_size": size,
                "steps": max(500, round(PASSES * facts.rows / size)),
                "learning_rate": 2e-3,
                "augment": True,
                "evaluations": 30,
                "patience": 15,
            }
        )

    def encoder(
        self, rows: Any, weight: NDArray[Any], recipe: Recipe, options: Mapping[str, Any]
    ) -> Any:
        """Clouds centred, in one unit."""
        return PointEncoder.fit(rows)

    def load_encoder(self, state: Mapping[str, Any]) -> Any:
        """The encoder of a saved model."""
        return load_encoder(state)

    def groups(self, spec: InputSpec) -> list[Group]:
        """Every order of the points; motions, of which answers for points see nothing either."""
        return [Permutation(), *([] if spec.rows == "elements" else [RigidMotion()])]

    def change(self, encoder: Any, feed: Feed) -> Any:
        """Jitter, and a rotation of each cloud where clouds stand in no common pose."""
        if not feed.recipe.augment:
            return None
        rotates = encoder.rotates

        def change(batch: Batch, draw: torch.Generator) -> Batch:
            inputs: Any = batch.inputs
            points, row = inputs.values[:, :3], rows_of(inputs.offsets, len(inputs.values))
            if rotates:
                turn = haar_orthogonal(
                    3, proper=True, samples=len(inputs.offsets) - 1, generator=draw
                )
                points = (turn.to(points.dtype)[row] @ points.unsqueeze(2)).squeeze(2)
            noise = torch.randn(points.shape, generator=draw, dtype=torch.float32)
            points = points + JITTER * noise.to(points.dtype)
            values = torch.cat([points, inputs.values[:, 3:]], 1)
            return batch._replace(inputs=inputs._replace(values=values))

        return change
