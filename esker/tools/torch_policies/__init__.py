"""A policy as one torch module, which runs without esker."""
