"""The label of a cell that says nothing."""

UNLABELLED = -1  # not annotated, or from outside the frame: such a cell takes no part in a loss
