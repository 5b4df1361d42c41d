"""Structures by name."""

from ansatz.registry import Registry

registry = Registry(
    "structure",
    {
        "vector": "ansatz.structures.vector.structure:Vector",
        "grid": "ansatz.structures.grid.structure:Grid",
        "sequence": "ansatz.structures.sequence.structure:SequenceStructure",
        "questions": "ansatz.structures.questions.structure:QuestionStructure",
        "pairs": "ansatz.structures.pairs.structure:PairStructure",
        "masked_passage": "ansatz.structures.sequence.passage.masked:MaskedPassageStructure",
        "passage": "ansatz.structures.sequence.passage.structure:PassageStructure",
        "series": "ansatz.structures.series.structure:SeriesStructure",
        "points": "ansatz.structures.set.points.structure:PointStructure",
        "set": "ansatz.structures.set.structure:SetStructure",
        "triples": "ansatz.structures.triples.structure:TripleStructure",
        "graph": "ansatz.structures.graph.structure:GraphStructure",
        "nodes": "ansatz.structures.graph.structure:NodeStructure",
        "node_pairs": "ansatz.structures.graph.structure:NodePairStructure",
        "links": "ansatz.structures.graph.links:LinkStructure",
        "joined": "ansatz.structures.joined.structure:JoinedTable",
        "molecule": "ansatz.structures.molecule.structure:MoleculeStructure",
    },
)
# How a structure is recognized without loading it: by its own option, by data, by X.
claims = {
    "text_column": "sequence",
    "identifier": "sequence",
    "image": "grid",
    "translation": "pairs",
    "edges": "graph",
    "smiles": "graph",
}
shared = {"identifier"}  # options that other structures have as well: they yield to the others
recognizers = {
    "molecule": "ansatz.data.molecules.reading:recognizes_molecules",
    "points": "ansatz.data.points.recognition:is_points",
    "set": "ansatz.data.sets.recognition:are_sets",
    "graph": "ansatz.structures.graph.recognition:recognizes_data",
    "sequence": "ansatz.structures.sequence.recognition:recognizes_data",
    "grid": "ansatz.data.grids:is_grids",
}
row_recognizers = {
    "links": "ansatz.structures.graph.recognition:recognizes_links",
    "molecule": "ansatz.data.molecules.reading:recognizes_molecules",
    "points": "ansatz.data.points.recognition:are_clouds",
    "set": "ansatz.data.sets.recognition:are_sets",
    "nodes": "ansatz.structures.graph.recognition:recognizes_nodes",
    "node_pairs": "ansatz.structures.graph.recognition:recognizes_pairs",
    "graph": "ansatz.structures.graph.recognition:recognizes_rows",
    "joined": "ansatz.structures.joined.recognition:recognizes_rows",
    "sequence": "ansatz.structures.sequence.recognition:recognizes_rows",
    "grid": "ansatz.structures.grid.recognition:recognizes_rows",
}
SEVERAL = "joined"  # columns of several kinds
DEFAULT = "vector"  # rows of a table, unless another structure recognizes the data
create = registry.create
names = registry.names
register = registry.register
