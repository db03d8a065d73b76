import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve()


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_layers_and_ops_on_another_backend(backend):
    if importlib.util.find_spec(backend) is None:
        pytest.skip(f"{backend} is not installed")
    run = subprocess.run(
        [
            *(sys.executable, "-m", "pytest"),
            *(HERE.parent, HERE.parents[1] / "test_ops.py"),
            f"--ignore={HERE}",
        ],
        cwd=HERE.parents[2],
        env={**os.environ, "KERAS_BACKEND": backend},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr
