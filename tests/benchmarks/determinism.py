"""What `--deterministic` costs.

    python tests/benchmarks/determinism.py

The Transformer's recipe trains on the built-in dates with and without it, in
turn, each time in a process of its own. Prints tokens a second and their
ratio.
"""

from recipe_speed import compare, recipe_speed

STEPS, ROUNDS = 150, 2


def main():
    def measure(*options):
        return recipe_speed("translate_transformer", *options, steps=STEPS)

    ways = {
        "without": measure,
        "--deterministic": lambda: measure("--deterministic"),
    }
    compare(ways, ROUNDS)


if __name__ == "__main__":
    main()
