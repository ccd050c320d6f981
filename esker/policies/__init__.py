"""Policies: network, observation normaliser, action head; every slot acts with parameters of its own."""
