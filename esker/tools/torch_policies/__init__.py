"""Twins: a policy as one torch module, so that it can be used where esker is not."""
