"""Tools for runs (render, export, card, compare), environments (check) and machines (doctor)."""
