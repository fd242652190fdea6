"""Where the states of users live. interface.py says what a store is; catalog.py names them."""
