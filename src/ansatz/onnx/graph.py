"""The ONNX graph of a served model, with text in and class names out."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ansatz.errors import UsageError
from ansatz.fitting.contracts.exporter import Input
from ansatz.fitting.model import Model
from ansatz.onnx.served import ServedModel, quiet

if TYPE_CHECKING:
    import onnx


_SHIFT = 8  # Stirling's series with 5 terms has 15 digits from here on
_STIRLING = (12, -360, 1260, -1680, 1188)  # its coefficients are one over these


def log1p(x: Tensor) -> Tensor:
    """Log(1 + x) with all digits for small x, though 1 + x has lost them.

    References:
        Kahan (1982), see Higham (2002), Accuracy and Stability of Numerical Algorithms, 1.14.1.
    """
    u = 1 + x
    exact = (u == 1) | u.isinf()
    gap = torch.where(exact, 1.0, u - 1)
    return torch.where(exact, torch.where(u == 1, x, u), torch.log(u) * (x / gap))


def expm1(x: Tensor) -> Tensor:
    """Exp(x) - 1 with all digits for small x."""
    u = torch.exp(x)
    plain = (u == 1) | (u == 0) | u.isinf()
    log_u = torch.where(plain, 1.0, torch.log(torch.where(plain, 2.0, u)))
    value = (u - 1) * (x / log_u)
    return torch.where(plain, torch.where(u == 1, x, u - 1), value)


def lgamma(x: Tensor) -> Tensor:
    """Log Gamma(x) for x > 0: Stirling's series at x + 8, and the recurrence back."""
    kind, x = x.dtype, x.double()  # the two parts cancel
    product = torch.ones_like(x)
    for k in range(_SHIFT):
        product = product * (x + k)
    z = x + _SHIFT
    square, series = (1 / z) ** 2, torch.zeros_like(x)
    # Constants as quotients of whole numbers: torch writes others in single precision.
    for divisor in reversed(_STIRLING):
        series = series * square + torch.ones_like(x) / divisor
    half_log_circle = torch.log(4 * _quarter(x)) / 2  # of 2 pi
    stirling = (z - 0.5) * torch.log(z) - z + half_log_circle + series / z
    direct = (x - 0.5) * torch.log(x) - x + half_log_circle + 1 / (12 * x)
    return torch.where(x > 1e4, direct, stirling - torch.log(product)).to(kind)


def softplus(x: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """Log(1 + e^x), the larger part outside of the logarithm; runtimes lack it in doubles."""
    x = beta * x
    return (x.clamp(min=0) + log1p(torch.exp(-x.abs()))) / beta


def clamp(x: Tensor, min: float | None = None, max: float | None = None) -> Tensor:
    """Numbers cut at two bounds; torch writes its own only where both bounds are of one type."""
    if min is not None:
        x = torch.maximum(x, x.new_full((), min))
    return x if max is None else torch.minimum(x, x.new_full((), max))


def atan2(y: Tensor, x: Tensor) -> Tensor:
    """The angle of the point (x, y) in (-pi, pi].

    The angle is halved three times, by tan(a/2) = y / (r + x), then the series takes over.
    """
    t = torch.minimum(y.abs(), x.abs()) / torch.maximum(y.abs(), x.abs()).clamp(min=1e-30)
    for _ in range(3):
        t = t / (1 + torch.sqrt(1 + t * t))  # at most tan(pi / 32)
    square, series = t * t, torch.zeros_like(t)
    for k in range(8, -1, -1):
        series = series * -square + torch.ones_like(t) / (2 * k + 1)
    angle = 8 * t * series  # in [0, pi / 4]
    quarter = _quarter(t)
    angle = torch.where(y.abs() > x.abs(), quarter - angle, angle)
    angle = torch.where(x < 0, 2 * quarter - angle, angle)
    return torch.where(y < 0, -angle, angle)


def _quarter(like: Tensor) -> Tensor:
    """Half of pi: a whole number of 2^-23 steps, and the rest."""
    steps = int(math.pi / 2 * 2**23)
    rest = int((math.pi / 2 * 2**23 - steps) * 2**23)
    one = torch.ones_like(like)
    return one * steps / 2**23 + one * rest / 2**46


def adaptive_mean(x: Tensor, output_size: Sequence[int]) -> Tensor:
    """Averages over ``output_size`` blocks along each axis, by one matrix of shares per axis.

    Block i of n is that of torch, from floor(i L / n) to ceil((i + 1) L / n) of L pixels.
    """
    for axis, count in enumerate(output_size, x.ndim - len(output_size)):
        if count == 1:
            x = x.mean(axis, keepdim=True)
            continue
        length, block = x.shape[axis], torch.arange(count, device=x.device)
        pixel = torch.arange(length, device=x.device).unsqueeze(1)
        begin = (block * length).div(count, rounding_mode="floor")
        end = ((block + 1) * length + count - 1).div(count, rounding_mode="floor")
        shares = ((pixel >= begin) & (pixel < end)).to(x.dtype) / (end - begin)  # (L, n)
        x = (x.movedim(axis, -1) @ shares).movedim(-1, axis)
    return x


def replacements() -> dict[Any, Callable[..., Tensor]]:
    """The operations that are replaced before a graph is written."""
    aten = torch.ops.aten
    return {
        aten.adaptive_avg_pool3d.default: adaptive_mean,
        aten.atan2.default: atan2,
        aten.clamp.default: clamp,
        aten.expm1.default: expm1,
        aten.lgamma.default: lgamma,
        aten.log1p.default: log1p,
        aten.softplus.default: softplus,
    }


ROWS, STEPS = "N", "T"  # the names of the batch axis and of the steps of sequences
_CATEGORIES = 2  # of ai.onnx.ml, the first version whose LabelEncoder maps text to whole numbers


def trace(served: ServedModel) -> "onnx.ModelProto":
    """The graph of the module, its rows a free axis, names as torch chose them."""
    rows = torch.export.Dim(ROWS)
    example = served.example()
    steps = {1: torch.export.Dim(STEPS, min=3, max=served.steps)} if served.steps > 3 else {}

    def free(value: Tensor) -> dict[int, Any]:
        return {0: rows, **(steps if value.ndim > 1 else {})}

    with torch.no_grad(), quiet():
        try:
            program = torch.export.export(
                served, example, dynamic_shapes={"values": tuple(map(free, example))}
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
            if steps and "Constraints violated" in str(error):
                raise UsageError(
                    f"torch cannot write {name} as a graph for any number of sequences and steps: "
                    "export a gru, lstm, mingru, bag, text_cnn, transformer or bert."
                ) from error
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
    """Gives inputs the names and types of their columns, and classes their names."""
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

    for each in _graphs(graph):
        for node in each.node:
            node.input[:] = [new(name) for name in node.input]
            node.output[:] = [new(name) for name in node.output]
            node.name = f"ansatz/{node.name}"
            del node.metadata_props[:]  # where in torch's source the node came from
            node.doc_string = ""
        for value in (*each.initializer, *each.value_info, *each.input, *each.output):
            value.name = new(value.name)
            del value.metadata_props[:]
        _name_rows(each)
    graph.name = "ansatz"


def _graphs(graph: "onnx.GraphProto") -> "Iterator[onnx.GraphProto]":
    """A graph, and those of the steps of recurrences inside it."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _graphs(attribute.g)


def _name_rows(graph: "onnx.GraphProto") -> None:
    """Names the rows and the steps; axes computed from them (8 N) stay unsaid."""
    given = {
        axis.dim_param: ROWS if k == 0 else STEPS
        for value in graph.input
        for k, axis in enumerate(_axes(value))
        if axis.dim_param
    }
    for value in (*graph.value_info, *graph.input, *graph.output):
        for axis in _axes(value):
            if axis.dim_param in given:
                axis.dim_param = given[axis.dim_param]
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
    """The labels of the codes of a prediction, as plain data; None where it is a number."""
    labels = model.outcome.labels
    return None if labels is None else labels.tolist()
