"""User-written workers: processes that fetch slices of a generation over HTTP and report scores."""
