"""From scored cells to a leaderboard, and its output formats."""
