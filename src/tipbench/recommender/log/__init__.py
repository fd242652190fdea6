"""The log of decisions and rewards, and what is counted in it."""
