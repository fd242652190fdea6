"""The DAG's file: one line for the default host, never over somebody's own."""

import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tipbench.airflow.dag_file import FILE, dag_text, hosts_in, put_dag_file, read_dag_file
from tipbench.airflow.hosts import DEFAULT_HOST
from tipbench.core.errors import InvalidInput

GPUS = ("http://gpu1:11434", "http://gpu2:11434")
BY_HAND = (
    'from tipbench.airflow.dag import bench_collect\n\ndag = bench_collect("http://gpu1:11434", schedule="@weekly")\n'
)


def test_the_default_host_takes_one_line() -> None:
    assert dag_text([DEFAULT_HOST]).startswith("from tipbench.airflow.dag import dag ")
    assert dag_text([DEFAULT_HOST]).count("\n") == 1


def test_other_hosts_are_named() -> None:
    assert 'dag = bench_collect("http://gpu1:11434", "http://gpu2:11434")\n' in dag_text(GPUS)


@given(st.lists(st.text(st.characters(codec="ascii"), min_size=1), min_size=1, max_size=3))
def test_what_is_written_is_python_and_read_again(hosts: list[str]) -> None:
    text = dag_text(hosts)
    assert hosts_in(text) == tuple(hosts)
    call = ast.parse(text).body[-1]
    if isinstance(call, ast.Assign) and isinstance(call.value, ast.Call):
        assert [ast.literal_eval(argument) for argument in call.value.args] == hosts
    assert {"airflow", "dag"} <= set(text.lower().replace(".", " ").split())


@pytest.mark.parametrize("text", ["", BY_HAND, "dag = bench_collect(1)\n", "print()\n", dag_text(GPUS) + "\n"])
def test_a_file_that_is_not_as_we_write_it_is_not_ours(text: str) -> None:
    assert hosts_in(text) is None


def test_written_replaced_unchanged(tmp_path: Path) -> None:
    folder = tmp_path / "dags"
    assert put_dag_file(folder, None) == (True, f"{folder / FILE} was written")
    assert read_dag_file(folder) == dag_text([DEFAULT_HOST])
    assert put_dag_file(folder, GPUS) == (True, f"{folder / FILE} was replaced")
    assert put_dag_file(folder, GPUS) == (False, f"{folder / FILE} is unchanged")
    assert [path.name for path in folder.iterdir()] == [FILE]


def test_without_hosts_those_of_the_file_stay(tmp_path: Path) -> None:
    put_dag_file(tmp_path, GPUS)
    assert put_dag_file(tmp_path, None)[0] is False
    assert read_dag_file(tmp_path) == dag_text(GPUS)


def test_a_file_changed_by_hand_stays(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(BY_HAND)
    is_new, said = put_dag_file(tmp_path, GPUS)
    assert not is_new
    assert "changed by hand" in said
    assert read_dag_file(tmp_path) == BY_HAND


@pytest.mark.parametrize("content", [b"import airflow\n", b"", b"\xff\xfe not text"])
def test_a_file_of_something_else_is_refused_and_stays(content: bytes, tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(InvalidInput, match="nothing was changed"):
        put_dag_file(tmp_path, GPUS)
    assert (tmp_path / FILE).read_bytes() == content


def test_a_folder_whose_airflow_home_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="set AIRFLOW_HOME"):
        put_dag_file(tmp_path / "nowhere" / "dags", None)
    assert list(tmp_path.iterdir()) == []
