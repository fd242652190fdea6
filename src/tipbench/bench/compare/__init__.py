"""Compare: from scored cells to a leaderboard, and its output."""
