"""Environments: Gymnasium's, Atari's, EnvPool's, and MuJoCo worlds stepped as arrays."""
