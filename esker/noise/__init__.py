"""Perturbations by address: tables, counters, low-rank factors; populations, shaping, fingerprint."""
