import dataclasses
import importlib.util
import json
import sys
from pathlib import Path

import pytest
import tensorflow as tf

from kseq.data.dates import dates
from kseq.training import run_recipe

RECIPES = sorted((Path(__file__).parent.parent / "recipes").glob("*.py"))
SMALL = {
    "translate_lstm": {"embedding_dim": 8, "units": 16},
    "translate_transformer": {"layers": 1, "model_dim": 16, "ffn_dim": 16},
}


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(params=RECIPES, ids=lambda path: path.stem)
def recipe(request):
    yield load(request.param)
    del sys.modules[request.param.stem]


@pytest.fixture
def config(recipe, tmp_path, monkeypatch):
    """A training of seconds on a table of dates, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    table = tmp_path / "dates.tsv"
    pairs = zip(*dates("train", size=200), strict=True)
    table.write_text("".join(f"{a}\t{b}\n" for a, b in pairs), "utf-8")
    return dataclasses.replace(
        recipe.DATES,
        train=(str(table),),
        run="runs/small",
        steps=4,
        evaluate_every=2,
        **SMALL[recipe.__name__],
    )


def test_trains_shows_and_exports(recipe, config, capsys):
    recipe.main(config)

    run, export = Path(config.run), Path("saved_models/small")
    lines = (run / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [2, 4]
    assert {"val_bleu", "val_chrf", "val_loss"} <= json.loads(lines[-1]).keys()
    assert len(list((run / "samples").glob("*.md"))) == 2
    assert list((run / "tensorboard").iterdir())
    printed = capsys.readouterr().out
    assert "exact match" in printed and "tensorboard --logdir" in printed

    served = tf.saved_model.load(str(export / "1")).signatures
    answer = served["serving_default"](text=tf.constant(["3 mars 1999", ""]))
    assert answer["text"].shape == (2,)
    assert answer["text"][1] == b""

    # The same command again: nothing to train, one more version.
    recipe.main(config)
    assert (run / "metrics.jsonl").read_text().splitlines() == lines
    assert sorted(path.name for path in export.glob("[0-9]*")) == ["1", "2"]


def test_an_error_of_the_user_is_one_message(
    recipe, config, monkeypatch, capsys
):
    words = [f"--train={config.train[0]}.missing", f"--run={config.run}"]
    monkeypatch.setattr(sys, "argv", ["recipe", *words])
    monkeypatch.setitem(sys.modules, "__main__", recipe)
    with pytest.raises(SystemExit) as stop:
        run_recipe(recipe.main, config, without_files=config)
    assert stop.value.code == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "dates.tsv.missing" in line


def test_another_model_in_the_same_run_is_refused(recipe, config):
    recipe.main(dataclasses.replace(config, steps=2))
    other = dataclasses.replace(config, vocab_size=config.vocab_size + 1)
    with pytest.raises(ValueError, match="vocab_size"):
        recipe.main(other)


def test_the_docstring_states_command_and_result(recipe):
    assert f"python recipes/{recipe.__name__}.py" in recipe.__doc__
