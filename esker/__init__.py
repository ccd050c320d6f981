"""esker."""
