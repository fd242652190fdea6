"""MLflow's own pages below /mlflow, behind the admin server's authentication."""
