"""The phases as an Airflow DAG, for those who outgrow one machine. Nothing else knows of it: it can be deleted."""
