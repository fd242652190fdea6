"""Care for a home as a whole: backup, restore and repair. It knows the bench and the recommender, and no server."""
