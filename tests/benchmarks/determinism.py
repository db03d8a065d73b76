"""What `--deterministic` costs.

    python tests/benchmarks/determinism.py

Two recipes train on their built-in corpora with and without it, in turn, each
time in a process of its own. Prints tokens a second and their ratio.
"""

import statistics

from recipe_speed import recipe_speed

NAMES = "translate_transformer", "classify_documents"
STEPS, ROUNDS = 150, 2


def main():
    print(f"{'':24}{'without':>10}{'with':>10}{'ratio':>8}")
    for name in NAMES:
        without, deterministic = [], []
        for _ in range(ROUNDS):
            without.append(recipe_speed(name, steps=STEPS))
            deterministic.append(
                recipe_speed(name, "--deterministic", steps=STEPS)
            )
        a, b = statistics.median(without), statistics.median(deterministic)
        print(f"{name:24}{a:10.0f}{b:10.0f}{b / a:8.2f}", flush=True)


if __name__ == "__main__":
    main()
