"""Algorithms: the loops that join strategy, engine and run folder; each reads like its paper."""
