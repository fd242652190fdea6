"""What a policy sees of a candidate: a vector of numbers. Each version is a module; catalog.py names them."""
