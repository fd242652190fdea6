"""The command line: parses flags, calls the bench or the recommender, and prints the results."""
