from tipbench.airflow.dag import dag  # Airflow reads files that hold the words "airflow" and "dag"
