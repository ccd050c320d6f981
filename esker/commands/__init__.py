"""The commands, one file each: `add` registers its flags, `run` does the work and returns the exit status."""
