"""Shadow policies: what other policies would have chosen, computed in the background."""
