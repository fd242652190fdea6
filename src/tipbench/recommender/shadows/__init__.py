"""Shadow policies: what others would have chosen, worked out beside the answers."""
