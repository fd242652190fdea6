"""Statistics about scores: pure functions over whole numbers, with nothing but the standard library."""
