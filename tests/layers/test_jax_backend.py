import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("jax") is None, reason="jax is not installed"
)
def test_the_tests_of_layers_and_ops_pass_on_jax():
    here = pathlib.Path(__file__).resolve()
    run = subprocess.run(
        [
            *(sys.executable, "-m", "pytest"),
            *(here.parent, here.parents[1] / "test_ops.py"),
            f"--ignore={here}",
        ],
        cwd=here.parents[2],
        env={**os.environ, "KERAS_BACKEND": "jax"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr
