"""Trains in a given directory, and is killed there, twice."""

import os
import random
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from kseq.process import OPTIONAL, start_keras

os.environ["KERAS_BACKEND"] = "tensorflow"
start_keras(without=OPTIONAL)  # as in a command: half of the time of this test

from tests.training.tiny_training import train  # noqa: E402


def newest(path):
    found = path.glob("checkpoints/last/*.index")
    return max((int(index.stem[5:]) for index in found), default=0)


def main(path):
    for _ in range(2):
        before = newest(path)
        # Only now does TensorFlow start threads: forking is still safe.
        child = os.fork()
        if child == 0:
            train(path, epochs=100_000)
        while newest(path) == before:
            time.sleep(0.01)
        time.sleep(random.uniform(0, 0.2))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
