import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve()
OPS = HERE.parents[1] / "ops"
TESTS = [*HERE.parent.glob("test_*.py"), *OPS.glob("test_*.py")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("backend", "tests"),
    [
        *[("jax", tests) for tests in sorted(TESTS) if tests != HERE],
        # What other tests compare, NumPy cannot read with its gradient.
        ("torch", HERE.with_name("test_every_layer.py")),
    ],
    ids=lambda value: getattr(value, "stem", value),
)
def test_layers_on_another_backend(backend, tests):
    if importlib.util.find_spec(backend) is None:
        pytest.skip(f"{backend} is not installed")
    run = subprocess.run(
        [
            *(sys.executable, "-m", "pytest"),
            *("-m", "slow or not slow"),
            tests,
        ],
        cwd=HERE.parents[2],
        env={**os.environ, "KERAS_BACKEND": backend},
        capture_output=True,
        text=True,
    )
    if run.returncode == pytest.ExitCode.NO_TESTS_COLLECTED:
        assert "1 skipped" in run.stdout, run.stdout  # of TensorFlow alone
        return
    assert run.returncode == 0, run.stdout + run.stderr
