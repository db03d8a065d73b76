"""How many operations a training step and a step of a search have.

    python tests/benchmarks/graph_size.py [KIND ...]

For the model of each recipe, small, as they are traced without XLA: the
operations of a training step for batches of any size, without constants; those
of one step of its search, greedily and with a beam of 4; and, of both, the
tensors that a GPU copies to the memory of the host, each of which it waits for.
A loop in a step counts once.

Of another commit: with PYTHONPATH set to the folder of its working tree.
"""

import argparse
import sys
from pathlib import Path

import keras

# Last, so that kseq may be that of another folder.
sys.path.append(str(Path(__file__).parents[2]))

from kseq.decoding import BeamSearch, GreedySearch
from tests.gpu_memory import HOST, GraphMemory, training_step
from tests.recipe_models import SERVED, make_served

_OF_A_SEARCH = 3  # loops: groups, those of them that are done, and tokens
_COLUMNS = ("training step", "greedy step", "beam step")


def main():
    """Prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("kinds", nargs="*", default=list(SERVED))
    options = parser.parse_args()
    names = [f"{name:>14} to host" for name in _COLUMNS]
    print(f"{'':30}" + "".join(names), flush=True)
    for kind in options.kinds:
        keras.backend.clear_session()
        cells = [
            f"{operations:14,} {copies:7,}"
            for operations, copies in sizes_of(kind)
        ]
        print(f"{kind:30}" + "".join(cells), flush=True)


def sizes_of(kind):
    """Pairs of numbers: operations, and copies to the host."""
    served = make_served(kind)
    yield size_of(GraphMemory(training_step(kind, served)))
    if not hasattr(served, "search"):
        return
    for search in (GreedySearch(), BeamSearch(4)):
        function = served.with_search(search).signatures["serving_default"]
        memory = GraphMemory(function.get_concrete_function())
        yield size_of(memory, _OF_A_SEARCH)


def size_of(memory, loops=0):
    """Of what is in so many loops, or more."""
    operations = sum(
        operation.type != "Const" and depth >= loops
        for operation, depth in memory.operations
    )
    copies = sum(
        copy.to == HOST and copy.loops >= loops for copy in memory.copies
    )
    return operations, copies


if __name__ == "__main__":
    main()
