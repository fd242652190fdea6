"""Which policy is live, as the history of the acts that made it so."""
