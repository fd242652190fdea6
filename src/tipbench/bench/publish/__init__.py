"""Publishing an experiment to MLflow's pages for prompts, traces, datasets and evaluations."""
