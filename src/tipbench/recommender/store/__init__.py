"""Stores of users' states. interface.py defines what a store is; moving.py opens stores and moves their content."""
