"""Sweeps: many ordinary runs whose options Optuna chooses, stopped early where they lag behind.

The package can be called: `esker.sweep("CartPole-v1", space={"lr": "0.001..0.1:log"}, trials=20)`.
"""

from esker.system.callable_module import call_as

call_as(__name__, "esker.sweep.python", "sweep")
