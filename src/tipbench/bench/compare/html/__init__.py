"""The leaderboard as one HTML file that opens offline, without scripts and without external resources."""
