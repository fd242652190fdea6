"""Statistics about scores: pure functions over numbers and arrays, each with what it assumes and what it estimates."""
