"""Work in several processes; tests of prepared data show the same bytes."""

import math
import os
import subprocess
import sys

import pytest

from kseq.data import DataError
from kseq.data.files.process_jobs import run_jobs
from kseq.user_error import UserError


@pytest.mark.parametrize("processes", [1, 2])
def test_each_job_is_done_once(tmp_path, processes):
    jobs = [tmp_path / str(number) for number in range(7)]
    done = run_jobs(os.mkdir, jobs, processes)
    assert sorted(done) == [*range(7)]
    assert sorted(tmp_path.iterdir()) == jobs


def test_an_error_of_the_function_is_raised():
    with pytest.raises(ValueError, match="math domain error"):
        list(run_jobs(math.sqrt, [1, -1, 4], processes=2))


def test_a_process_that_dies_is_one_message():
    with pytest.raises(UserError, match=r"was preparing .* has died") as found:
        list(run_jobs(os._exit, [1, 1], processes=2))
    # After wrong data nothing is kept; what is finished here is.
    assert not isinstance(found.value, DataError)


def test_processes_do_not_run_the_program(here):
    """It may be the page of a recipe that trains wherever it is imported."""
    (here / "page.py").write_text("""
from kseq.data.files.process_jobs import run_jobs
print("once")
print(sorted(run_jobs(len, ["a", "bc"], processes=2)))
""")
    done = subprocess.run(
        [sys.executable, "page.py"], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "once\n[0, 1]\n"
