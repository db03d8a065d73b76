"""What a second machine brings, as far as one machine can tell.

    python tests/benchmarks/two_processes.py

The Transformer's recipe on the built-in dates, in turn: one process on one
core; two processes with a core each, which are two machines to TensorFlow and
send their gradients over the loopback; and one process on both cores. The
global batches are the same. Prints target tokens a second and ratios.
"""

import os
import statistics

from recipe_speed import recipe_speed

STEPS, ROUNDS = 150, 1


def main():
    first, second, *_ = sorted(os.sched_getaffinity(0))
    works = {
        "one process, one core": [{first}],
        "two processes, a core each": [{first}, {second}],
        "one process, two cores": [{first, second}],
    }
    speeds = {name: [] for name in works}
    for _ in range(ROUNDS):
        for name, cores in works.items():
            speeds[name].append(
                recipe_speed("translate_transformer", steps=STEPS, cores=cores)
            )
    base = statistics.median(speeds["one process, one core"])
    for name, values in speeds.items():
        median = statistics.median(values)
        print(f"{name:28}{median:8.0f}{median / base:8.2f}")


if __name__ == "__main__":
    main()
