"""What `--deterministic` costs.

    python tests/benchmarks/determinism.py

The Transformer's recipe trains on the built-in dates with and without it, in
turn, each time in a process of its own. Prints tokens a second and their
ratio.
"""

import statistics

from recipe_speed import recipe_speed

STEPS, ROUNDS = 150, 2


def main():
    ways = {"without": [], "--deterministic": ["--deterministic"]}
    speeds = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, options in ways.items():
            speeds[name].append(
                recipe_speed("translate_transformer", *options, steps=STEPS)
            )
    base = statistics.median(speeds["without"])
    for name, values in speeds.items():
        median = statistics.median(values)
        print(f"{name:16}{median:8.0f}{median / base:8.2f}")


if __name__ == "__main__":
    main()
