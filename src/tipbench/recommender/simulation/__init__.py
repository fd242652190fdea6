"""A simulation of users: the offline test that a policy has to win before it goes live.

world.py says what users are like, draws.py holds all chance of a user's life, user_model.py is the truth that policies
don't see, rollout.py lets a policy serve a user, experiment.py does so for all users and seeds.
"""
