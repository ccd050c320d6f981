"""Gymnasium's MuJoCo v5 environments without Gymnasium's step: the same physics and the same bits in less time."""
