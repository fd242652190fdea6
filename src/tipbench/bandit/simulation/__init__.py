"""A simulation of users: the offline test that a policy has to win before it goes live.

world.py says what users are like, draws.py holds all chance of a user's life, life.py is the truth that policies don't
see, play.py lets a policy serve a user, experiment.py does so for all users and seeds.
"""
