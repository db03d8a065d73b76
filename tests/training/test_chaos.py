"""Recipes that are stopped and started again, as processes.

The result is that of an undisturbed training, to the bit.
"""

import faulthandler
import hashlib
import json
import random
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kseq.runs.checkpoint_files import read_newest
from tests.recipe_files import write_files

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SIGNALS = {signal.SIGKILL: -9, signal.SIGTERM: 143, signal.SIGINT: 130}
RECURRENT = [
    *("--embedding-dim=16", "--units=16", "--dtype=float32", "--patience=99")
]
SMALL = {
    "translate_lstm": [
        *("--embedding-dim=16", "--units=32", "--vocab-size=600")
    ],
    "translate_transformer": [
        *("--layers=1", "--model-dim=32", "--ffn-dim=32", "--vocab-size=600")
    ],
    "classify_documents": [
        *("--dim=16", "--units=8", "--batch-pieces=512", "--vocab-size=600"),
        "--pretraining-steps=500",
    ],
    "tag_words": ["--vocab-size=400", "--dim=16", "--batch-pieces=512"],
    "caption_images": [*RECURRENT, "--vocab-size=400"],
    "transcribe_speech": RECURRENT,
    "chat": [*RECURRENT, "--vocab-size=400", "--batch-tokens=1024"],
    "retrieve_answers": [
        *RECURRENT,
        *("--dim=16", "--vocab-size=400", "--batch-tokens=1024"),
    ],
    "write_text": [
        *("--layers=1", "--model-dim=16", "--ffn-dim=16", "--heads=2"),
        *("--length=64", "--batch-size=32", "--written=8"),
    ],
    "learn_algorithms": [
        *("--units=8", "--slots=8", "--slot-dim=4", "--examples=8")
    ],
}


class Recipe:
    """A recipe in a folder of its own."""

    def __init__(self, folder, name, steps, *more):
        self.folder = folder
        self.steps = steps
        options = [*SMALL[name], *more]
        if name != "learn_algorithms":  # its data are drawn
            for field, path in write_files(name, folder, size=400).items():
                path = path[0] if isinstance(path, tuple) else path
                options += [f"--{field}", path]
        self.command = [
            *(sys.executable, str(ROOT / "recipes" / f"{name}.py"), *options),
            *(f"--steps={steps}", f"--evaluate-every={steps // 6}"),
        ]

    def start(self, run):
        return subprocess.Popen(
            [*self.command, "--run", run],
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            # A process in the background would ignore Ctrl-C.
            preexec_fn=lambda: signal.signal(
                signal.SIGINT, signal.default_int_handler
            ),
        )

    def finish(self, run):
        """Trains to the end; the seconds to its first metrics, and after."""
        start = time.perf_counter()
        process = self.start(run)
        while process.poll() is None and not self.progress(run):
            time.sleep(0.1)
        first = time.perf_counter()
        _, errors = process.communicate()
        assert process.returncode == 0, errors.decode()
        return first - start, time.perf_counter() - first

    def progress(self, run):
        """Steps of which there are metrics, pretraining included."""
        return sum(map(last_step, (self.folder / run).glob("**/metrics.jsonl")))

    def disturb(self, run, steps, seconds):
        """Whether the signal, some time after steps, was before the last."""
        process = self.start(run)
        while process.poll() is None and self.progress(run) < steps:
            time.sleep(0.1)
        number = random.choice(list(SIGNALS))
        try:
            _, errors = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(number)
            _, errors = process.communicate()
        # Before the recipe has begun, Python itself ends on a signal.
        codes = (SIGNALS[number], -number, 1)
        assert process.returncode in (0, *codes), errors.decode()
        last = f"checkpoints/last/ckpt-{self.steps}.sha256"
        return not (self.folder / run / last).exists()

    def results(self, run):
        """Digests of all that was learned, and what validation said."""
        path = self.folder / run
        tensors = {
            (name, key): hashlib.sha256(value.numpy().tobytes()).digest()
            for name in ("last", "best")
            for key, value in newest(path / "checkpoints" / name)
            if key.startswith(("vars", "opt", "value"))
        }
        assert {key[0] for key in tensors} == {"last", "best"}
        lines = (path / "metrics.jsonl").read_text("utf-8").splitlines()
        records = map(json.loads, lines)
        scored = {"val_loss", "val_cost"}
        return tensors, [r for r in records if scored & r.keys()]


def last_step(path):
    *lines, _ = path.read_text("utf-8").split("\n")  # the last is not whole
    return json.loads(lines[-1])["step"] if lines else 0


def newest(directory):
    return read_newest(directory)[1].items()


@pytest.mark.parametrize(
    ("name", "steps", "times"),
    [(name, 600, 4) for name in SMALL] + [("translate_transformer", 3000, 20)],
)
def test_a_disturbed_training_ends_like_an_undisturbed_one(
    tmp_path, name, steps, times
):
    faulthandler.cancel_dump_traceback_later()  # it takes longer than others
    seed = secrets.randbelow(2**31)
    print(f"seed={seed}")
    random.seed(seed)
    recipe = Recipe(tmp_path, name, steps)
    before, after = recipe.finish("whole")
    total = recipe.progress("whole")

    # The first before any step, the others on the way.
    starts = sorted(random.uniform(0, 0.9 * total) for _ in range(times - 1))
    disturbed = sum(
        recipe.disturb("cut", start, random.uniform(0, seconds))
        for start, seconds in [(0, before), *((s, after / 10) for s in starts)]
    )
    print(f"{disturbed} of {times} before the last step")
    assert disturbed > times // 2
    recipe.finish("cut")
    tensors, validations = recipe.results("whole")
    cut_tensors, cut_validations = recipe.results("cut")
    assert cut_validations == validations
    assert len(validations) == 6
    assert cut_tensors == tensors


@pytest.mark.parametrize("name", SMALL)
def test_a_deterministic_training_gives_the_same_bits(tmp_path, name):
    faulthandler.cancel_dump_traceback_later()
    recipe = Recipe(tmp_path, name, 60, "--deterministic")
    recipe.finish("one")
    recipe.finish("other")
    assert recipe.results("one") == recipe.results("other")
