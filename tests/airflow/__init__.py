"""Mirrors src/tipbench/airflow."""
