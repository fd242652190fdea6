"""Who chooses and learns beside us: a module each, run in an environment of its own, where there is no tipbench."""
