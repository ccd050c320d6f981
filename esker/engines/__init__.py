"""Engines: where evaluation happens. They move items and results and know nothing of strategies."""
