import dataclasses
import importlib.util
import json
import re
import secrets
import sys
from pathlib import Path

import pytest
import tensorflow as tf

from kseq.data.built_in import dates, dispatch_reports
from kseq.runs.run_directory import batch_fields
from kseq.training import run_recipe

RECIPES = sorted((Path(__file__).parent.parent / "recipes").glob("*.py"))
# Tracing a recipe takes long: one goes through a first training alone, and
# one through a first and a second. The third is the demo.
ONCE = [RECIPES[0], pytest.param(RECIPES[1], marks=pytest.mark.slow)]
TWICE = RECIPES[2:3]
SMALL = {
    "translate_lstm": {"embedding_dim": 8, "units": 16},
    "translate_transformer": {"layers": 1, "model_dim": 16, "ffn_dim": 16},
    # The others take long to be traced; their proof is a slow test.
    "classify_documents": {
        "dim": 8,
        "units": 4,
        "vocab_size": 400,
        "model": "flat",
        "pretraining_steps": 2,
    },
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
    """A training of seconds on a table, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    table = tmp_path / "table.tsv"
    if recipe.__name__ == "classify_documents":
        documents = dispatch_reports("train", size=200)
        rows, train = (documents.labels, documents.texts), str(table)
        built_in = recipe.REPORTS
    else:
        rows, train = dates("train", size=200), (str(table),)
        built_in = recipe.DATES
    lines = [f"{a}\t{b}\n" for a, b in zip(*rows, strict=True)]
    table.write_text("".join(lines), "utf-8")
    return dataclasses.replace(
        built_in,
        train=train,
        run="runs/small",
        steps=2,
        evaluate_every=2,
        **SMALL[recipe.__name__],
    )


@pytest.mark.parametrize(
    "recipe", ONCE, indirect=True, ids=["classify", "translate_lstm"]
)
def test_trains_shows_and_exports(recipe, config, capsys):
    recipe.main(config)

    run, export = Path(config.run), Path("saved_models/small")
    pretrained = (run / "pretraining" / "checkpoints" / "last").is_dir()
    assert pretrained == hasattr(config, "pretraining_steps")
    lines = (run / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [2]
    score = "accuracy" if "classify" in recipe.__name__ else "bleu"
    assert {f"val_{score}", "val_loss"} <= json.loads(lines[-1]).keys()
    assert len(list((run / "samples").glob("*.md"))) == 1
    assert list((run / "tensorboard").iterdir())
    printed = capsys.readouterr().out
    assert "saved_models/small/1 on" in printed
    assert "tensorboard --logdir" in printed

    served = tf.saved_model.load(str(export / "1")).signatures
    answer = served["serving_default"](text=tf.constant(["3 mars 1999", ""]))
    [first] = {"text", "label"} & answer.keys()
    assert answer[first].shape == (2,)


@pytest.mark.parametrize(
    "recipe", TWICE, indirect=True, ids=lambda path: path.stem
)
def test_the_same_command_again(recipe, config):
    """Nothing to train, one more version; another model is refused."""
    recipe.main(config)
    metrics = (Path(config.run) / "metrics.jsonl").read_text()
    recipe.main(config)
    assert (Path(config.run) / "metrics.jsonl").read_text() == metrics
    versions = Path("saved_models/small").glob("[0-9]*")
    assert sorted(path.name for path in versions) == ["1", "2"]

    other = dataclasses.replace(config, vocab_size=config.vocab_size + 1)
    with pytest.raises(ValueError, match="vocab_size"):
        recipe.main(other)


@pytest.mark.slow
def test_trains_on_two_devices(recipe, config, monkeypatch, two_devices):
    monkeypatch.setattr(recipe.devices, "device_strategy", lambda: two_devices)
    for steps in (2, 4):
        recipe.main(dataclasses.replace(config, steps=steps))
    lines = (Path(config.run) / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [2, 4]


@pytest.mark.slow
def test_goes_on_with_smaller_batches(recipe, config, capsys):
    """What a step without memory tells its user to do."""
    recipe.main(config)
    [name] = batch_fields(config)
    smaller = {name: getattr(config, name) // 4}
    recipe.main(dataclasses.replace(config, steps=4, **smaller))
    assert f"goes on with {name}: " in capsys.readouterr().err
    lines = (Path(config.run) / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [2, 4]


def test_an_error_of_the_user_is_one_message(
    recipe, config, monkeypatch, capsys
):
    words = ["--train", "table.tsv.missing", f"--run={config.run}"]
    monkeypatch.setattr(sys, "argv", ["recipe", *words])
    monkeypatch.setitem(sys.modules, "__main__", recipe)
    with pytest.raises(SystemExit) as stop:
        run_recipe(recipe.main, config, without_files=config)
    assert stop.value.code == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "table.tsv.missing" in line


@pytest.mark.slow
def test_attention_finds_the_planted_evidence(tmp_path, monkeypatch, capsys):
    """Sentences in 95 % of the documents, words in 90 %."""
    monkeypatch.chdir(tmp_path)
    recipe = load(RECIPES[0].with_name("classify_documents.py"))
    recipe.main(dataclasses.replace(recipe.REPORTS, seed=secrets.randbelow(99)))
    printed = capsys.readouterr().out
    shares = dict(re.findall(r"the (\w+) that decides .* in +(.*)%", printed))
    assert float(shares["sentence"]) >= 95
    assert float(shares["word"]) >= 90


@pytest.mark.slow
@pytest.mark.parametrize("model", ["hierarchical", "transformer"])
def test_the_other_models_train(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    recipe = load(RECIPES[0].with_name("classify_documents.py"))
    recipe.main(
        dataclasses.replace(
            recipe.REPORTS, model=model, dim=8, steps=4, evaluate_every=2
        )
    )
    assert Path("saved_models/reports/1").is_dir()


def test_the_docstring_states_command_and_result(recipe):
    assert f"python recipes/{recipe.__name__}.py" in recipe.__doc__
