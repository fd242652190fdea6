"""Decides between rows in rounds: which to judge next, who is out, and what picking the leader now would cost."""
