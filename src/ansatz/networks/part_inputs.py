"""The inputs of networks on examples of several kinds, part by part."""

from torch import Tensor

from ansatz.spec import InputSpec


def count_tensors(part: InputSpec) -> int:
    """The number of tensors of a part: values and mask of sequences, x and codes of columns."""
    return 1 + (part.structure == "sequence" or bool(part.cardinalities))


def cut_inputs(owner: str, spec: InputSpec, inputs: tuple[Tensor, ...]) -> list[tuple[Tensor, ...]]:
    """The tensors of each part; sequences end with the longest that is there."""
    counts = [count_tensors(part) for _, part in spec.parts]
    if len(inputs) != sum(counts):
        raise ValueError(
            f"{owner} takes {sum(counts)} tensors, those of "
            f"{', '.join(name for name, _ in spec.parts)} in turn, got {len(inputs)}."
        )
    found, first = [], 0
    for (_, part), count in zip(spec.parts, counts, strict=True):
        own = inputs[first : first + count]
        if part.structure == "sequence" and not own[1].is_meta:
            longest = max(1, int(own[1].any(0).sum()))
            own = tuple(t[:, :longest] for t in own)
        found.append(own)
        first += count
    return found
