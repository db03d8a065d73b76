"""What a second machine brings, as far as one machine can tell.

    python tests/benchmarks/two_processes.py

The Transformer's recipe on the built-in dates, in turn: one process on one
core; two processes with a core each, which are two machines to TensorFlow and
send their gradients over the loopback; and one process on both cores. The
global batches are the same. Prints target tokens a second and ratios.
"""

import os

from recipe_speed import compare, recipe_speed

STEPS, ROUNDS = 150, 1


def main():
    def measure(*cores):
        return recipe_speed("translate_transformer", steps=STEPS, cores=cores)

    first, second, *_ = sorted(os.sched_getaffinity(0))
    ways = {
        "one process, one core": lambda: measure({first}),
        "two processes, a core each": lambda: measure({first}, {second}),
        "one process, two cores": lambda: measure({first, second}),
    }
    compare(ways, ROUNDS)


if __name__ == "__main__":
    main()
