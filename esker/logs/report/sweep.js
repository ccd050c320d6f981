// The sweep: parallel coordinates of its trials, and which options mattered.
