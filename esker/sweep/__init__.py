"""Sweeps: many ordinary runs whose options Optuna chooses, stopped early where they lag behind."""
