"""Simulated users: the offline test that a policy has to pass before it goes live.

world.py describes the users, user_model.py draws their random events and holds the ground truth that policies don't
see, rollout.py lets a policy serve one user, experiment.py does so for all users and seeds, and gate.py decides.
popularity.py is a baseline that is counted on other users of the same world.
"""
