"""What the machine gives: threads, memory, imports."""
