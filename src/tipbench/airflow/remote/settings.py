"""The settings of this runner: a table of its own, so that nothing is left of it where it is taken out."""

from tipbench.core.settings import Setting

URL = Setting("TIPBENCH_AIRFLOW_URL", "http://localhost:8080", "Address of Airflow's API server.")
USERNAME = Setting("TIPBENCH_AIRFLOW_USERNAME", "", "User name for Airflow.", secret=True)
PASSWORD = Setting("TIPBENCH_AIRFLOW_PASSWORD", "", "Password for Airflow.", secret=True)
TOKEN = Setting("TIPBENCH_AIRFLOW_TOKEN", "", "Bearer token for Airflow, instead of name and password.", secret=True)
TABLE = (URL, USERNAME, PASSWORD, TOKEN)
