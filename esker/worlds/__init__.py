"""Environments: Gymnasium's, Atari's, EnvPool's."""
