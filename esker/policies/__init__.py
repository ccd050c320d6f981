"""Policies: network, observation normaliser, action head; every slot acts with its own parameters."""
