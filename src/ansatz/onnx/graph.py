"""The ONNX graph of a served model, with text in and class names out."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import torch

from ansatz.errors import UsageError
from ansatz.fitting.contracts.exporter import Input
from ansatz.fitting.model import Model
from ansatz.onnx.served import ServedModel, quiet
from ansatz.onnx.special import replacements

if TYPE_CHECKING:
    import onnx

ROWS = "N"  # the name of the batch axis
_CATEGORIES = 2  # of ai.onnx.ml, the first version whose LabelEncoder maps text to whole numbers


def trace(served: ServedModel) -> "onnx.ModelProto":
    """The graph of the module, its rows a free axis, names as torch chose them."""
    rows = torch.export.Dim(ROWS)
    example = served.example()
    with torch.no_grad(), quiet():
        try:
            program = torch.export.export(
                served, example, dynamic_shapes={"cells": tuple({0: rows} for _ in example)}
            )
            program = program.run_decompositions(replacements())
            made = torch.onnx.export(
                program,
                (),
                dynamo=True,
                verbose=False,
                input_names=[f"input_{k}" for k in range(len(example))],
                output_names=[f"output_{k}" for k in range(len(served.outputs))],
            )
        except Exception as error:  # of torch: no family of errors covers what a module may do
            name = type(served.first.network).__name__
            raise UsageError(
                f"torch cannot write the network {name} as ONNX: {_reason(error)}"
            ) from error
    assert made is not None
    proto: onnx.ModelProto = made.model_proto
    return proto


def _reason(error: BaseException) -> str:
    """The first line of the first error, which torch has wrapped in advice to its developers."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__


def finish(
    proto: "onnx.ModelProto", inputs: list[Input], outputs: list[str], labels: list[Any] | None
) -> None:
    """Gives inputs the names of their columns and text where cells are text, classes their names.

    Args:
        proto: of :func:`trace`, changed in place.
        inputs: in the order of the module's arguments.
        outputs: the names of the outputs.
        labels: what the codes of ``prediction`` stand for; None where it is a number.
    """
    _rename(proto.graph, inputs, outputs)
    for k, given in enumerate(inputs):
        if given.is_text:
            _read_text(proto, k, given)
    if labels is not None and "prediction" in outputs:
        _name_classes(proto.graph, labels)


def _rename(graph: "onnx.GraphProto", inputs: list[Input], outputs: list[str]) -> None:
    """Columns and outputs by their own names; what is inside cannot clash with a column."""
    names = {f"input_{k}": _inner(given) for k, given in enumerate(inputs)}
    names |= {f"output_{k}": name for k, name in enumerate(outputs)}

    def new(name: str) -> str:
        return names.get(name, f"ansatz/{name}") if name else name

    for node in graph.node:
        node.input[:] = [new(name) for name in node.input]
        node.output[:] = [new(name) for name in node.output]
        node.name = f"ansatz/{node.name}"
        del node.metadata_props[:]  # where in torch's source the node came from
        node.doc_string = ""
    for value in (*graph.initializer, *graph.value_info, *graph.input, *graph.output):
        value.name = new(value.name)
        del value.metadata_props[:]
    _name_rows(graph)
    graph.name = "ansatz"


def _name_rows(graph: "onnx.GraphProto") -> None:
    """``ROWS`` in place of torch's name for them; axes computed from them (8 N) stay unsaid."""
    given = {axis.dim_param for value in graph.input for axis in _axes(value)} - {""}
    for value in (*graph.value_info, *graph.input, *graph.output):
        for axis in _axes(value):
            if axis.dim_param in given:
                axis.dim_param = ROWS
            elif axis.dim_param:
                axis.ClearField("dim_param")


def _axes(value: "onnx.ValueInfoProto") -> "Iterable[onnx.TensorShapeProto.Dimension]":
    axes: Iterable[onnx.TensorShapeProto.Dimension] = value.type.tensor_type.shape.dim
    return axes


def _inner(given: Input) -> str:
    return f"ansatz/code of {given.name}" if given.is_text else given.name


def _read_text(proto: "onnx.ModelProto", place: int, given: Input) -> None:
    """Text becomes its code by a table inside the graph."""
    from onnx import TensorProto, helper

    graph = proto.graph
    node = helper.make_node(
        "LabelEncoder",
        [given.name],
        [_inner(given)],
        name=f"ansatz/levels of {given.name}",
        domain="ai.onnx.ml",
        keys_strings=list(given.codes),
        values_int64s=list(given.codes.values()),
        default_int64=given.unknown,
    )
    graph.node.insert(0, node)
    text = helper.make_tensor_value_info(given.name, TensorProto.STRING, [ROWS])
    graph.input[place].CopyFrom(text)
    if not any(used.domain == "ai.onnx.ml" for used in proto.opset_import):
        proto.opset_import.append(helper.make_opsetid("ai.onnx.ml", _CATEGORIES))


def _name_classes(graph: "onnx.GraphProto", labels: list[Any]) -> None:
    """Codes become the classes or items that they stand for: whole numbers, truth, or text."""
    from onnx import TensorProto, helper

    kinds = {bool: TensorProto.BOOL, int: TensorProto.INT64}
    (first,) = types if len(types := {type(label) for label in labels}) == 1 else (str,)
    kind = kinds.get(first, TensorProto.STRING)
    values: Any = labels if first in kinds else [str(label).encode() for label in labels]
    graph.initializer.append(helper.make_tensor("ansatz/labels", kind, [len(labels)], values))
    for node in graph.node:
        node.output[:] = ["ansatz/codes" if n == "prediction" else n for n in node.output]
        node.input[:] = ["ansatz/codes" if n == "prediction" else n for n in node.input]
    inputs = ["ansatz/labels", "ansatz/codes"]
    graph.node.append(helper.make_node("Gather", inputs, ["prediction"], name="ansatz/name"))
    for value in graph.output:
        if value.name == "prediction":
            value.type.tensor_type.elem_type = kind


def label_list(model: Model) -> list[Any] | None:
    """What the codes of a prediction stand for, as plain data; None where it is a number."""
    labels = model.outcome.labels
    return None if labels is None else labels.tolist()
