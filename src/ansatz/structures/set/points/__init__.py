"""Point clouds: sets whose elements have coordinates."""
