"""What one does with a run: render, export, card; and with a machine: check, doctor, bench."""
