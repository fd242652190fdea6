"""The leaderboard as a page: one HTML file that opens offline, without a script and without anything from elsewhere."""
