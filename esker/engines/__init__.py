"""Engines: where evaluation happens. They move items and results about and know nothing of strategies."""
