"""Structures by name."""

from ansatz.registry import Registry

registry = Registry(
    "structure",
    {
        "vector": "ansatz.structures.vector.structure:Vector",
        "grid": "ansatz.structures.grid.structure:Grid",
        "sequence": "ansatz.structures.sequence.structure:SequenceStructure",
        "masked_passage": "ansatz.structures.sequence.passage.masked:MaskedPassageStructure",
        "passage": "ansatz.structures.sequence.passage.structure:PassageStructure",
    },
)
# How a structure is recognized without loading it: by its own option, by data, by X.
claims = {"image": "grid", "text_column": "sequence"}
recognizers = {
    "sequence": "ansatz.structures.sequence.recognition:recognizes_data",
    "grid": "ansatz.data.grids:is_grids",
}
row_recognizers = {
    "sequence": "ansatz.structures.sequence.recognition:recognizes_rows",
    "grid": "ansatz.structures.grid.recognition:recognizes_rows",
}
DEFAULT = "vector"  # rows of a table, unless another structure recognizes the data
create = registry.create
names = registry.names
register = registry.register
