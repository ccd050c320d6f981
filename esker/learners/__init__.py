"""Learners: the gradient half. Replay, critics and actors; everything that trains by TD3."""
