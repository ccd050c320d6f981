"""The report: one self-contained interactive page about one or many runs, written once or served live."""
