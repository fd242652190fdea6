"""The phases of a bench as an Airflow DAG, for runs on several machines. Nothing else imports it: it can be deleted."""
