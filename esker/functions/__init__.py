"""Any model, any reward: the parts of `esker.Evolution`."""
