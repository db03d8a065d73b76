"""Draws docs/curves.png from runs of learn_algorithms.

python docs/learning_curves.py RUN...

A panel for each task, a line for each run: the cost of a sequence of validation
in bits, against the sequences that were trained on, as in figures 3, 7, 10, 13
and 15 of Graves et al. 2014.
"""

import json
import sys
from pathlib import Path

from matplotlib.figure import Figure

TITLES = {
    "copy": "copy",
    "repeat_copy": "repeat copy",
    "recall": "associative recall",
    "ngrams": "dynamic n-grams",
    "sort": "priority sort",
}
COLOURS = {
    "dense": ("#2f6fb0", "Turing machine, dense"),
    "lstm": ("#3c8d40", "Turing machine, LSTM"),
    "": ("#e08a1e", "three LSTMs"),
}


def main(*paths):
    runs = [curve(Path(path)) for path in paths]
    tasks = [task for task in TITLES if any(run[0] == task for run in runs)]
    figure = Figure(figsize=(11, 2.7), layout="constrained")
    panels = figure.subplots(1, len(tasks), squeeze=False)[0]
    for axes, task in zip(panels, tasks, strict=True):
        for _, kind, sequences, costs in (r for r in runs if r[0] == task):
            colour, label = COLOURS[kind]
            axes.plot(sequences, costs, ".-", color=colour, label=label)
        axes.set(title=TITLES[task], xlabel="thousands of sequences")
        axes.set_ylim(bottom=0)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("bits per sequence")
    lines = panels[0].get_legend_handles_labels()
    figure.legend(*lines, loc="outside lower center", ncols=3, frameon=False)
    figure.savefig(Path(__file__).with_name("curves.png"), dpi=110)


def curve(run):
    """The task, the controller, and costs after thousands of sequences."""
    config = json.loads((run / "config.json").read_text("utf-8"))
    lines = map(json.loads, (run / "metrics.jsonl").open(encoding="utf-8"))
    found = [
        (line["step"], line["val_cost"]) for line in lines if "val_cost" in line
    ]
    steps, costs = zip(*found, strict=True)
    kind = config["controller"] if config["model"] == "ntm" else ""
    sequences = [step * config["batch_size"] / 1000 for step in steps]
    return config["task"], kind, sequences, costs


if __name__ == "__main__":
    main(*sys.argv[1:])
