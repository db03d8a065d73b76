"""Random options of each recipe: a run, its export and its answers agree."""

import json
import random
import re
import shutil
import sys
import typing
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest

import kseq
from kseq import cli
from kseq.commands.capabilities import Capabilities
from tests.recipe_files import write_files
from tests.recipes import load_recipe
from tests.test_recipes import SMALL, TASKS

# What numbers are drawn from. Options that are not here keep their defaults;
# of the others, all choices of words and switches are drawn.
NUMBERS = {
    "accumulation_steps": (1, 2),
    "averaged": (1, 2, 3),
    "beam_size": (1, 2, 4),
    "clip_norm": (0.1, 1.0),
    "coverage": (0.0, 1.0),
    "ctc": (0.0, 0.3),
    "decoder_layers": (1, 2),
    "dropout": (0.0, 0.2),
    "ema": (0.0, 0.5, 0.99),
    "encoder_layers": (1, 2),
    "heads": (1, 2),
    "kv_heads": (0, 1),
    "label_smoothing": (0.0, 0.1),
    "last_states": (0, 2),
    "layers": (1, 2),
    "length": (8, 33),
    "max_length": (20, 100),
    "max_pieces": (5, 60),
    "max_turns": (1, 2, 5),
    "minimum_risk": (0.0, 0.5),
    "ngrams": (0, 1, 3),
    "piece_dropout": (0.0, 0.2),
    "pretraining_steps": (0, 2),
    "pyramid_layers": (0, 1, 2),
    "r_drop": (0.0, 1.0),
    "read_heads": (1, 2),
    "risk_samples": (2, 3),
    "sampling_rate": (0.1, 1.0),
    "sampling_steps": (1, 3),
    "sentence_dropout": (0.0, 0.3),
    "subword_dropout": (0.0, 0.3),
    "temperature": (0.5, 1.0),
    "top_k": (0, 3),
    "warmup_steps": (1, 3),
    "weight_decay": (0.0, 0.01),
    "window": (0, 1, 3),
    "write_heads": (1, 2),
}
# Switches and choices that are not drawn: of other data, of a training that is
# no training, of a machine, and metrics of other packages.
NOT_DRAWN = {
    *("overwrite", "new_tokenizer", "track"),
    *("plain", "images", "audio", "task"),
}
NOT_CHOSEN = {"range_test", "mixed_float16"}
SIZES = {
    **dict.fromkeys(("units", "embedding_dim", "dim", "model_dim"), 8),
    **{"ffn_dim": 8, "heads": 2, "num_layers": 1, "vocab_size": 600},
    **{"slots": 8, "slot_dim": 4, "examples": 2, "written": 4},
}


def candidates(config):
    """The values that each option is drawn from, of the class of a config."""
    hints = typing.get_type_hints(config)
    found = {k: v for k, v in NUMBERS.items() if k in hints}
    for name, kind in hints.items():
        if name in NOT_DRAWN or name == "metrics":
            continue
        if kind is bool:
            found[name] = (True, False)
        [*kinds] = typing.get_args(kind)
        if kinds[1:] == [...]:  # a tuple of choices
            kind, kinds = kinds[0], [*typing.get_args(kinds[0])]
        if typing.get_origin(kind) is typing.Literal:
            found[name] = tuple(k for k in kinds if k not in NOT_CHOSEN)
    return found


def words_of(options):
    """The options of a command line."""
    for name, value in options.items():
        option = name.strip("_").replace("_", "-")
        if isinstance(value, bool):
            yield f"--{option}" if value else f"--no-{option}"
        else:
            yield f"--{option}"
            is_list = isinstance(value, list | tuple)
            yield from map(str, value if is_list else [value])


def train(name, options, capfd):
    """Trains, without what is refused; returns the options that were not."""
    while True:
        code = cli.main(["train", name, *words_of(options)])
        *_, message = capfd.readouterr().err.splitlines() or [""]
        if code == 0:
            return options
        assert code == 2, message
        named = re.findall(r"--(?:no-)?([a-z-]+)", message)
        named = [each.replace("-", "_") for each in named]
        drawn = [each for each in named if each in NUMBERS.keys() | options]
        assert drawn, f"names no option of {options}: {message}"
        options = {k: v for k, v in options.items() if k != drawn[0]}
        shutil.rmtree("runs", ignore_errors=True)


def hypotheses(path, task):
    """Texts and scores of the answers, in a batch and one by one."""
    predictor = kseq.load(path)
    model = Capabilities(path)
    given = Namespace(features=task.features)
    lines = [line.encode() for line in (*task.lines, task.lines[0])]
    inputs = model.source.read_lines(model, given)(lines)
    answers = predictor.answers(inputs)
    alone = [predictor.answers([each])[0] for each in inputs]
    return [
        [(best.text, best.score) for each in some for best in each.hypotheses]
        for some in (answers, alone)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_random_options(name, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    recipe = load_recipe(name)
    found = candidates(recipe.Config)
    del sys.modules[name]
    draw = random.Random(name)
    known = typing.get_type_hints(recipe.Config)
    options = {k: v for k, v in SIZES.items() if k in known}
    for each in draw.sample(sorted(found), min(len(found), 8)):
        options[each] = draw.choice(found[each])
    options |= {"steps": 4, "evaluate_every": 2, "run": "runs/drawn"}
    if name != "learn_algorithms":
        options |= write_files(name, Path())

    options = train(name, options, capfd)

    task = TASKS[name]
    of_run, alone = hypotheses(Path("runs/drawn"), task)
    others = [alone, *hypotheses(Path("saved_models/drawn/1"), task)]
    if name != "write_text":  # which draws its answers
        for each in others:
            assert [text for text, _ in each] == [text for text, _ in of_run]
            np.testing.assert_allclose(
                [score for _, score in each],
                [score for _, score in of_run],
                rtol=1e-3,
                atol=1e-3,
            )

    if options.get("schedule") == "cosine" or options.get("patience"):
        return  # it ends with its steps
    train(name, {**options, "steps": 6}, capfd)
    rows = Path("runs/drawn/metrics.jsonl").read_text("utf-8").splitlines()
    rows = list(map(json.loads, rows))
    assert rows[-1]["step"] == 6
    values = [v for row in rows for v in row.values() if isinstance(v, float)]
    assert np.isfinite(values).all()
