"""Statistics of scores: pure functions on numbers and arrays; each documents what it assumes and estimates."""
