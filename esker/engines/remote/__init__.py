"""Workers of a user's own: processes that fetch slices of a generation over HTTP and report scores."""
