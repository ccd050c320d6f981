"""Tasks: what a member is evaluated on, as episodes of an environment or a user's function."""
