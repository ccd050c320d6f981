"""Interfaces of other systems: their scripts run with a new import line."""
