"""What is needed to answer is imported, and no more."""

import os
import subprocess
import sys

import pytest

BLOCKED = """
import sys
for name in ("matplotlib", "scipy", "sklearn"):
    sys.modules[name] = None  # so that an import of it fails
from kseq.data import TextPreprocessor, Tokenizer
tokenizer = Tokenizer.train(["a rose"], 20, "char")
print(TextPreprocessor(tokenizer)(["a rose"]).lengths.numpy()[0] > 1)
"""


@pytest.mark.slow  # TensorFlow starts once more
def test_a_preprocessor_works_without_what_training_imports():
    result = subprocess.run(
        [sys.executable, "-c", BLOCKED],
        capture_output=True,
        check=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert result.stdout.strip() == "True"
