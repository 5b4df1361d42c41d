"""Sets: elements whose order carries no meaning."""
