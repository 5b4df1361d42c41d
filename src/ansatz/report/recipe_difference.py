"""What two models were made with that is not the same."""

from typing import Any, NamedTuple

from ansatz.fitting import FitOptions
from ansatz.fitting.model import Model
from ansatz.fitting.options import declared
from ansatz.fitting.provenance import provenance_of
from ansatz.fitting.summaries import describe_model
from ansatz.storage.json_file import plain

# What a fit was asked for that is told by what came of it.
_TOLD = ("options", "network", "inference", "pretrained", "freeze", "test")


class Setting(NamedTuple):
    """One setting that differs; None where a model does not have it."""

    name: str
    a: Any
    b: Any


def recipe_difference(a: Model, b: Model) -> list[Setting]:
    """Law, network, training, columns and split of two models, where they differ."""
    first, second = recipe_of(a), recipe_of(b)
    recipes = [model.recipe for model in (a, b)]
    if (recipes[0] is None) != (recipes[1] is None):  # nothing of a training to set side by side
        for found, recipe in zip((first, second), recipes, strict=True):
            steps = "solved exactly" if recipe is None else f"AdamW, {recipe.steps} steps"
            for name in () if recipe is None else type(recipe).model_fields:
                found.pop(name, None)
            found["training"] = steps
        first.pop("holdout", None)
        second.pop("holdout", None)
    return [
        Setting(name, first.get(name), second.get(name))
        for name in dict.fromkeys([*first, *second])
        if first.get(name) != second.get(name)
    ]


def recipe_of(model: Model) -> dict[str, Any]:
    """Everything that decided a fitted model besides its rows, flat, by name."""
    said = describe_model(model)
    origin = provenance_of(model)
    found: dict[str, Any] = {"likelihood": said["likelihood"]}
    found |= {f"likelihood.{name}": value for name, value in said["likelihood_options"].items()}
    found["network"] = said["network"]
    found |= {f"network.{name}": value for name, value in (said["network_options"] or {}).items()}
    found["inference"] = said["inference"]
    if model.recipe is not None:
        mlp = ("widths", "activation", "dropout")  # told as options of the network
        fields = model.recipe.model_dump(mode="json")
        found |= {name: value for name, value in fields.items() if name not in mlp}
    found |= _other_parameters(model, found)
    names = [column["name"] for column in said["columns"]]
    found["columns"] = ", ".join(map(str, names))
    if origin is not None:
        deciding = {name for name, each in declared(FitOptions).items() if each.option.decides}
        deciding -= {*_TOLD, *origin.column_roles}
        asked = {name: value for name, value in origin.asked.options.items() if name in deciding}
        found |= {name: value for name, value in origin.column_roles.items() if value} | asked
        found |= {"test": origin.test, "given": origin.given, "holdout": origin.holdout}
    found["parameters"] = said["parameters"]
    return {name: plain(value) for name, value in found.items()}


def _other_parameters(model: Model, known: dict[str, Any]) -> dict[str, Any]:
    """Settings that neither the recipe nor the network's options repeat."""
    silent = {"likelihood_options", "network_options", "random_state", "widths", "activation"}
    silent |= {"dropout", "n_jobs", "device", "verbose", "warm_start", "time_limit", "epochs"}
    return {
        name: value
        for name, value in model.task.settings.arguments.items()
        if name not in silent and name not in known and value is not None
    }
