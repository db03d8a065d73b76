import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve()
OPS = HERE.parents[1] / "ops"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("backend", "tests"),
    [
        ("jax", [HERE.parent, OPS]),
        # What other tests compare, NumPy cannot read with its gradient.
        ("torch", [HERE.with_name("test_every_layer.py")]),
    ],
)
def test_layers_on_another_backend(backend, tests):
    if importlib.util.find_spec(backend) is None:
        pytest.skip(f"{backend} is not installed")
    run = subprocess.run(
        [
            *(sys.executable, "-m", "pytest"),
            *("-m", "slow or not slow"),
            *tests,
            f"--ignore={HERE}",
        ],
        cwd=HERE.parents[2],
        env={**os.environ, "KERAS_BACKEND": backend},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr
