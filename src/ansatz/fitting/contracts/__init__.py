"""The contracts between the pipeline and the members of the three axes."""
