"""Judges that run by themselves. They fill in the same file as a person and go through the same apply."""
