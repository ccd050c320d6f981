"""The typed configuration: options, how a request becomes one, flags, other systems' keys."""
