"""Runs: a folder with everything needed to resume, evaluate and share."""
