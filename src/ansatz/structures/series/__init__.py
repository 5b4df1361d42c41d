"""Series in time: windows of the past, from which the steps ahead are forecast."""
