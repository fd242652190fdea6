"""Judging: exports candidates blind, and checks the returned scores before anything is written."""
