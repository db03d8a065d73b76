import ast
import dataclasses
import faulthandler
import json
import os
import re
import secrets
import signal
import sys
from argparse import Namespace
from pathlib import Path

import pytest

import kseq.commands.open_predictor
from kseq import run_recipe, training
from kseq.command_line.option_types import check_options
from kseq.commands.capabilities import Capabilities
from kseq.data.text.tokenized_pairs import TokenizedPairs
from kseq.files.recorded_metrics import is_validation, recorded_metrics
from kseq.runs.run_directory import batch_fields
from kseq.serving import TaggerPredictor, TransducerPredictor
from kseq.terminal import single_line
from kseq.training import MetricsLog
from kseq.user_error import UserError
from tests.recipe_files import write_files
from tests.recipes import load_recipe
from tests.slow import others_slow, slow

# Sizes of a training of seconds.
SMALL = {
    "translate_lstm": {
        "embedding_dim": 8,
        "units": 16,
        "max_length": 32,
        "pieces": ("bpe", "char"),
        "vocab_size": 600,
        "metrics": ("cer", "exact_match"),
    },
    "translate_transformer": {"layers": 1, "model_dim": 16, "ffn_dim": 16},
    "translate_convolutional": {
        "embedding_dim": 8,
        "units": 8,
        "encoder_layers": 1,
        "decoder_layers": 2,
    },
    # The others take long to be traced; their proof is a slow test.
    "classify_documents": {
        "dim": 8,
        "units": 4,
        "vocab_size": 400,
        "model": "flat",
        "pretraining_steps": 2,
        "vectors": "vectors.txt",
        "calibrate": True,
    },
    "tag_words": {
        "dim": 8,
        "vocab_size": 400,
        "accumulation_steps": 2,
        "vectors": "vectors.txt",
        "calibrate": True,
    },
    "caption_images": {"embedding_dim": 8, "units": 8},
    "transcribe_speech": {"embedding_dim": 8, "units": 8},
    "spot_words": {"units": 8, "calibrate": True},
    "chat": {"embedding_dim": 8, "units": 8, "vocab_size": 400},
    "retrieve_answers": {"embedding_dim": 8, "units": 8, "vocab_size": 400},
    "learn_algorithms": {"units": 8, "slots": 8, "slot_dim": 4, "examples": 2},
    "write_text": {"layers": 1, "model_dim": 8, "ffn_dim": 8, "written": 8},
}
BUILT_IN = {
    "translate_lstm": "DATES",
    "translate_transformer": "DATES",
    "translate_convolutional": "DATES",
    "classify_documents": "REPORTS",
    "tag_words": "JOURNEYS",
    "caption_images": "SCENES",
    "transcribe_speech": "MORSE",
    "spot_words": "MORSE",
    "chat": "SMALL_TALK",
    "retrieve_answers": "SMALL_TALK",
    "write_text": "BRACKETS",
}


@dataclasses.dataclass(frozen=True)
class Task:
    """What the commands are given for a recipe, and what they print.

    Args:
        lines: two, the inputs of the model, the second one blank.
        features: path of the .npz file that has what the lines name.
        files: what `kseq evaluate` reads.
        val: name of a score of the validation.
        scores: what `kseq evaluate` prints.
        refused: dict, a command and what it is given -> its message.
    """

    lines: tuple[str, str] = ("3 mars 1999", "")
    features: str | None = None
    files: tuple[str, ...] = ("left", "right")
    val: str = "bleu"
    scores: str = "BLEU "
    refused: dict[str, str] = dataclasses.field(default_factory=dict)


TALK = {"lines": ("Hi!\tHello!", ""), "files": ("dialogues.txt",)}
FEATURES = {"features": "features.npz", "files": ("table.tsv",)}
NO_ATTENTION = {
    "explain run": "signature explain",
    "explain export": "signature explain",
}
NO_FILE_OF_BITS = "takes vectors, which evaluate does not read"
TASKS = {
    "translate_lstm": Task(
        files=("table.tsv", "--metrics", "cer", "bleu"),
        val="cer",
        scores="CER ",
    ),
    "translate_transformer": Task(),
    "translate_convolutional": Task(),
    "classify_documents": Task(
        files=("table.tsv",), val="accuracy", scores="accuracy "
    ),
    "tag_words": Task(
        files=("table.tsv",),
        val="accuracy",
        scores="span F1 ",
        refused=NO_ATTENTION,
    ),
    "caption_images": Task(lines=("1.png", ""), **FEATURES),
    "transcribe_speech": Task(
        lines=("1.wav", ""), val="cer", scores="CER ", **FEATURES
    ),
    "spot_words": Task(
        lines=("1.wav", ""), val="accuracy", scores="accuracy ", **FEATURES
    ),
    "chat": Task(**TALK),
    "retrieve_answers": Task(
        val="recall_at_1", scores="recall@1 ", refused=NO_ATTENTION, **TALK
    ),
    "learn_algorithms": Task(
        lines=("[[0, 1, 0, 0, 1, 1, 0, 1, 0]]", ""),
        files=("input",),
        val="cost",
        refused={
            "evaluate run": NO_FILE_OF_BITS,
            "evaluate export": NO_FILE_OF_BITS,
        },
    ),
    "write_text": Task(
        files=("left",),
        val="perplexity",
        scores="perplexity ",
        refused={**NO_ATTENTION, "evaluate export": "is an export"},
    ),
}
# Options that are wrong for what is not read from a file.
WRONG = {"learn_algorithms": ("--slots", "2")}


@pytest.fixture(params=SMALL)
def recipe(request):
    yield load_recipe(request.param)
    del sys.modules[request.param]


@pytest.fixture
def config(recipe, tmp_path, monkeypatch):
    """A training of seconds on a table, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    small = {"run": "runs/small", "steps": 4, "evaluate_every": 2}
    small |= SMALL[recipe.__name__]
    if recipe.__name__ == "learn_algorithms":  # its data are drawn
        return dataclasses.replace(recipe.Config(), **small)
    files = write_files(recipe.__name__, Path())
    built_in = getattr(recipe, BUILT_IN[recipe.__name__])
    return dataclasses.replace(built_in, **files, **small)


def stop_after(monkeypatch, steps):
    """Asks the process to end, as a scheduler does."""
    written = MetricsLog.on_train_batch_end

    def and_stop(log, batch, logs=None):
        written(log, batch, logs)
        if log.model.optimizer.iterations == steps:
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(MetricsLog, "on_train_batch_end", and_stop)


@pytest.mark.parametrize(
    "recipe",
    # What they share is tested with one.
    others_slow(SMALL, ["tag_words"]),
    indirect=True,
)
def test_from_training_to_answers(recipe, config, monkeypatch, capfd, call):
    """Train, stop, resume, export, load, predict, evaluate, explain."""
    task = TASKS[recipe.__name__]
    classifies = recipe.__name__ == "classify_documents"
    page = sys.modules["__main__"]
    monkeypatch.setattr(page, "__command__", "kseq train NAME", raising=False)
    with monkeypatch.context() as patch, pytest.raises(SystemExit) as stop:
        # Before the first validation, which takes longer than training;
        # a classifier within its second epoch, after its pretraining.
        stop_after(patch, 3 if classifies else 1)
        recipe.main(config)
    assert stop.value.code == 143
    has_vectors = bool(getattr(config, "vectors", ""))
    Path("vectors.txt").unlink(missing_ok=True)  # is not read again
    recipe.main(config)

    run, export = Path(config.run), Path("saved_models/small/1")
    pretrained = (run / "pretraining" / "checkpoints" / "last").is_dir()
    assert pretrained == classifies
    is_calibrated = getattr(config, "calibrate", False)
    assert (run / "calibration.json").is_file() == is_calibrated
    metrics = (run / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in metrics] == [2, 2, 4, 4]
    is_of_bits = recipe.__name__ == "learn_algorithms"
    names = {f"val_{task.val}", "val_error" if is_of_bits else "val_loss"}
    assert names <= json.loads(metrics[-1]).keys()
    assert len(list((run / "samples").glob("*.md"))) == 2
    assert list((run / "tensorboard").iterdir())
    card = (run / "README.md").read_text("utf-8")
    assert "4 of 4 steps" in card
    assert "\n    kseq train NAME" in card
    has_files = getattr(config, "train", None)
    title = "Scores of the export" if has_files else "Test scores"
    assert f"## {title}" in card
    is_average = getattr(config, "averaged", 0) and not config.ema
    assert ("mean of several" if is_average else "the best on the") in card
    assert ("word vectors of" in card) == has_vectors
    assert (export / "assets.extra" / "README.md").read_text("utf-8") == card
    report = capfd.readouterr().out
    assert f"{export} on " in report
    assert "tensorboard --logdir" in report

    loaded = {path: kseq.load(path) for path in (run, export)}
    # Opening a model takes seconds: the commands share what is loaded.
    monkeypatch.setattr(
        kseq.commands.open_predictor, "load", lambda path, **_: loaded[path]
    )
    texts = [
        answers_of(predictor, path, task, call)
        for path, predictor in loaded.items()
    ]
    assert texts[0] == texts[1]

    sizes = ("slots", "vocab_size", "units")
    size = next(name for name in sizes if hasattr(config, name))
    other = dataclasses.replace(config, **{size: getattr(config, size) + 1})
    with pytest.raises(ValueError, match=size):
        recipe.main(other)


def answers_of(predictor, path, task, call):
    """What it answers in Python, which is what the commands print."""
    kind = "export" if predictor.model is None else "run"
    options = ["--features", task.features] if task.features else []
    model = Capabilities(path)
    given = Namespace(features=task.features)
    inputs_of = model.source.read_lines(model, given)
    inputs = inputs_of([line.encode() for line in task.lines])
    attention = ["--attention"] * (f"explain {kind}" not in task.refused)
    answers = predictor.answers(inputs, attention=bool(attention))
    texts = [answer.hypotheses[0].text for answer in answers]
    assert [type(text) for text in texts] == [str, str]
    if not isinstance(predictor, TransducerPredictor):  # which gives arrays
        found = predictor(inputs)
        if isinstance(predictor, TaggerPredictor):  # which gives lists
            found = list(map(" ".join, found))
        assert found == texts

    given = {"lines": task.lines}
    found = call("predict", path, *options, **given)
    assert found.splitlines() == [
        single_line(text, keep="\t") for text in texts
    ]
    found = call("predict", path, "--json", *attention, *options, **given)
    records = list(map(json.loads, found.splitlines()))
    assert records == [answer.record for answer in answers]

    message = task.refused.get(f"evaluate {kind}")
    found = call("evaluate", path, *task.files, *options, message=message)
    assert (message or task.scores) in found
    message = task.refused.get(f"explain {kind}")
    page = call("explain", path, *options, message=message, **given)
    assert message or page.startswith("<!doctype html>")
    assert message or page.count("<article") == 2
    return texts


@pytest.mark.slow
@pytest.mark.parametrize(
    "recipe",
    ["translate_transformer", "translate_lstm", "translate_convolutional"],
    indirect=True,
)
def test_a_guided_alignment_is_the_same_after_a_stop(
    recipe, config, monkeypatch
):
    rows = Path("table.tsv").read_text("utf-8").splitlines()
    Path("aligned.tsv").write_text("".join(f"{row}\t0-0\n" for row in rows))
    guided = {"columns": ("1", "2", "3"), "guided_alignment": 0.5}
    config = dataclasses.replace(config, train=("aligned.tsv",), **guided)
    recipe.main(dataclasses.replace(config, run="runs/whole"))
    with monkeypatch.context() as patch, pytest.raises(SystemExit):
        stop_after(patch, 1)
        recipe.main(config)
    recipe.main(config)
    losses = [
        [row["val_loss"] for row in validations(run)]
        for run in ("runs/whole", config.run)
    ]
    assert len(losses) == len(losses[0]) == 2
    assert losses[0] == losses[1]


@pytest.mark.parametrize(
    "recipe",
    [
        *("translate_lstm", "translate_transformer"),
        *map(slow, ("translate_convolutional", "chat", "transcribe_speech")),
        slow("caption_images"),
    ],
    indirect=True,
)
def test_answers_are_as_long_as_in_training(recipe, config, monkeypatch):
    """And sources that are texts."""

    def stop(*_, **options):
        raise SystemExit

    monkeypatch.setattr(training, "fit", stop)
    monkeypatch.setattr(TokenizedPairs, "answer_limit", lambda *_: 1201)
    monkeypatch.setattr(TokenizedPairs, "source_limit", lambda *_: 1100)
    options = {"max_length": 1300}
    if recipe.__name__ == "translate_transformer":
        options["positions"] = "learned"
    with pytest.raises(SystemExit):
        recipe.main(dataclasses.replace(config, **options))
    task = json.loads(Path(config.run, "task.json").read_text())
    assert task["max_length"] == 1201
    if recipe.__name__.startswith("translate"):
        assert task["preprocessor"]["max_length"] == 1100
        model = json.loads(Path(config.run, "model.json").read_text())
        assert model["config"].get("max_length", 1300) >= 1300


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["translate_transformer"], indirect=True)
def test_lora_with_other_options_is_the_same_after_a_stop(
    recipe, config, monkeypatch
):
    recipe.main(dataclasses.replace(config, run="runs/base", steps=2))
    options = {"from_": "runs/base", "lora": 2, "freeze": ("encoder_*",)}
    options |= {"ema": 0.5, "r_drop": 1.0}
    config = dataclasses.replace(config, **options)
    recipe.main(dataclasses.replace(config, run="runs/whole"))
    with monkeypatch.context() as patch, pytest.raises(SystemExit):
        stop_after(patch, 1)
        recipe.main(config)
    recipe.main(config)
    whole, resumed = map(validations, ("runs/whole", config.run))
    assert len(whole) == len(resumed) == 2
    for one, other in zip(whole, resumed, strict=True):
        assert one["val_loss"] == other["val_loss"]


def validations(run):
    rows = recorded_metrics(Path(run, "metrics.jsonl"))
    return [row for row in rows if is_validation(row)]


@pytest.mark.slow
def test_trains_on_two_devices(recipe, config, monkeypatch, two_devices):
    monkeypatch.setattr(kseq.devices, "device_strategy", lambda: two_devices)
    for steps in (2, 4):
        recipe.main(dataclasses.replace(config, steps=steps))
    assert [row["step"] for row in validations(config.run)] == [2, 4]


@pytest.mark.slow
def test_resumes_with_smaller_batches(recipe, config, capsys):
    """What a step without memory tells its user to do."""
    recipe.main(dataclasses.replace(config, steps=2))
    [name] = batch_fields(config)
    smaller = {name: getattr(config, name) // 4}
    recipe.main(dataclasses.replace(config, **smaller))
    assert f"resumes with {name}: " in capsys.readouterr().err
    assert [row["step"] for row in validations(config.run)] == [2, 4]


def test_every_recipe_cuts_its_batches_where_asked(recipe):
    """The option exists, does nothing by default, and reaches `compile`."""
    assert recipe.Config().accumulation_steps == 1
    compiled = [
        node
        for node in ast.walk(ast.parse(Path(recipe.__file__).read_text()))
        if isinstance(node, ast.Call)
        if getattr(node.func, "attr", None) in ("compile", "compile_model")
    ]
    [call] = compiled
    config = dataclasses.replace(recipe.Config(), accumulation_steps=3)
    assert config.compile_arguments()["accumulation_steps"] == 3
    if call.func.attr == "compile_model":
        assert list(map(ast.unparse, call.args)) == ["model", "config"]
    else:
        settings = {ast.unparse(each.value) for each in call.keywords}
        assert "config.compile_arguments()" in settings


@pytest.mark.slow
def test_resumes_with_micro_batches(recipe, config, capsys):
    """The other thing that a step without memory tells its user to do."""
    whole = dataclasses.replace(config, accumulation_steps=1)
    recipe.main(dataclasses.replace(whole, steps=2))
    recipe.main(dataclasses.replace(whole, accumulation_steps=2))
    errors = capsys.readouterr().err
    assert "resumes with accumulation_steps: 1 -> 2" in errors
    assert "restart" not in errors
    assert [row["step"] for row in validations(config.run)] == [2, 4]


def test_an_error_of_the_user_is_one_message(
    recipe, config, monkeypatch, capsys
):
    wrong = WRONG.get(recipe.__name__, ("--train", "table.tsv.missing"))
    words = [*wrong, f"--run={config.run}"]
    monkeypatch.setattr(sys, "argv", ["recipe", *words])
    monkeypatch.setitem(sys.modules, "__main__", recipe)
    with pytest.raises(SystemExit) as stop:
        run_recipe(recipe.main, config, without_files=config)
    assert stop.value.code == 2
    [line] = capsys.readouterr().err.splitlines()
    assert wrong[1] in line


# What is printed about the built-in corpora, and the least of it in percent.
FOUND = {
    "classify_documents": {
        r"decisive sentence: (.*)%": 95,
        r"decisive word: (.*)%": 90,
    },
    "caption_images": {
        r"exact match (.*) %": 95,
        r"the cell of an object .* for (.*)% of the words": 90,
    },
    "transcribe_speech": {
        r"exact match (.*) %": 98,
        r"attention moves forward at (.*)% of the steps": 95,
    },
    "chat": {
        r"exact match (.*) %": 95,
        r"the turn with the fact .* in (.*)% of \d+ right": 95,
    },
    "retrieve_answers": {r"recall@1 (.*) %": 90},
}


@pytest.mark.slow  # 4 to 20 minutes each
@pytest.mark.parametrize("name", FOUND)
def test_attention_finds_the_planted_evidence(
    name, tmp_path, monkeypatch, capsys
):
    """Trained on the built-in corpus as `kseq train NAME` does.

    With its seed, of which docs/results.md has the scores; documents are
    classified with any.
    """
    faulthandler.cancel_dump_traceback_later()  # it takes longer than others
    monkeypatch.chdir(tmp_path)
    recipe = load_recipe(name)
    config = getattr(recipe, BUILT_IN[name])
    if name == "classify_documents":
        config = dataclasses.replace(config, seed=secrets.randbelow(99))
    recipe.main(config)
    printed = capsys.readouterr().out
    for pattern, least in FOUND[name].items():
        [found] = re.findall(pattern, printed)
        assert float(found) >= least, pattern


@pytest.mark.slow
@pytest.mark.parametrize(
    ("recipe", "choice"),
    [
        ("classify_documents", {"model": "hierarchical"}),
        ("classify_documents", {"model": "transformer"}),
        (
            "classify_documents",
            {
                "model": "transformer",
                "layers": 1,
                "heads": 2,
                "kv_heads": 1,
                "norm": "post",
                "positions": "learned",
                "window": 4,
            },
        ),
        ("tag_words", {"model": "transformer"}),
        (
            "tag_words",
            {
                "model": "transformer",
                "heads": 2,
                "norm": "both",
                "normalization": "rms",
                "activation": "swiglu",
                "positions": "rotary",
                "share_layers": True,
            },
        ),
        ("caption_images", {"decoder": "transformer"}),
        ("caption_images", {"attention": "dot", "cell": "gru"}),
        ("caption_images", {"context_gate": True, "minimum_risk": 0.5}),
        ("caption_images", {"sampling_schedule": "inverse_sigmoid"}),
        (
            "caption_images",
            {"attention": "none", "train": None, "features": ""},
        ),
        (
            "transcribe_speech",
            {"attention": "concat", "cell": "rnn", "encoder_layers": 1},
        ),
        (
            "transcribe_speech",
            {
                "attention": "general",
                "order": "luong",
                "sampling_schedule": "exponential",
            },
        ),
        ("chat", {"model": "single", "attention": "scaled_dot"}),
        (
            "chat",
            {
                "model": "joined",
                "r_drop": 1.0,
                "piece_dropout": 0.1,
                "patience": 0,
            },
        ),
        (
            "chat",
            {
                "attention": "none",
                "cell": "gru",
                "sampling_schedule": "linear",
                "sampling_steps": 1,
            },
        ),
        ("learn_algorithms", {"model": "lstm", "task": "sort"}),
        ("learn_algorithms", {"controller": "dense", "task": "recall"}),
        ("learn_algorithms", {"task": "repeat_copy"}),
        ("learn_algorithms", {"task": "ngrams"}),
        ("write_text", {"model": "lstm", "tokens": "bpe", "vocab_size": 500}),
        ("write_text", {"train": None, "positions": "learned", "window": 4}),
        (
            "write_text",
            {
                "positions": "relative",
                "share_layers": True,
                "optimizer": "lion",
                "schedule": "cosine",
                "weight_decay": 0.1,
                "label_smoothing": 0.1,
            },
        ),
        (
            "translate_transformer",
            {
                "positions": "rotary",
                "kv_heads": 2,
                "norm": "both",
                "normalization": "rms",
                "activation": "swiglu",
                "decoder_layers": 2,
                "optimizer": "adafactor",
                "schedule": "constant",
                "ema": 0.9,
                "r_drop": 2.0,
                "minimum_risk": 0.5,
                "risk_samples": 2,
                "piece_dropout": 0.1,
                "subword_dropout": 0.1,
                "pretraining_steps": 2,
                "freeze": ("encoder_0",),
            },
        ),
        ("translate_transformer", {"averaged": 2, "average_of": "best"}),
        (
            "translate_lstm",
            {
                "attention": "location_aware",
                "order": "bahdanau",
                "input_feeding": False,
                "cell": "gru",
                "layers": 2,
            },
        ),
        (
            "translate_lstm",
            {
                "attention": "none",
                "input_feeding": False,
                "cell": "rnn",
                "bidirectional": False,
                "reverse_source": True,
            },
        ),
        (
            "translate_lstm",
            {
                "attention": "location",
                "sampling_schedule": "linear",
                "sampling_rate": 1.0,
                "sampling_steps": 2,
            },
        ),
        ("translate_lstm", {"attention": "concat", "last_states": 4}),
        (
            "translate_lstm",
            {"copy": True, "pieces": ("bpe",), "pretraining_steps": 2},
        ),
        ("translate_lstm", {"local": "predictive", "window": 3}),
        ("translate_lstm", {"local": "monotonic", "attention": "concat"}),
    ],
    indirect=["recipe"],
)
def test_the_other_models_train(recipe, config, choice):
    recipe.main(dataclasses.replace(config, **choice))
    assert Path("saved_models/small/1").is_dir()


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["translate_transformer"], indirect=True)
def test_moving_averages_take_the_place_of_a_mean(recipe, config):
    recipe.main(dataclasses.replace(config, ema=0.9))
    assert not Path(config.run, "checkpoints", "average").exists()
    best = kseq.load_run(config.run, weights="best").predictor()
    exported = kseq.load("saved_models/small/1")
    lines = ["3 mars 1999", "12"]
    assert best.scores(lines, lines) == pytest.approx(
        exported.scores(lines, lines), abs=1e-4
    )


@pytest.mark.parametrize("recipe", ["write_text"], indirect=True)
def test_an_lstm_that_writes_has_no_heads_to_divide_by(recipe):
    for size in (250, 251):
        check_options(recipe.Config(model="lstm", model_dim=size))
    with pytest.raises(UserError, match=r"--model-dim: .* of --heads 8"):
        check_options(recipe.Config(model_dim=250))
    with pytest.raises(UserError, match="--model-dim: expected an even number"):
        check_options(recipe.Config(model_dim=251, heads=1))


def test_the_docstring_states_command_and_result(recipe):
    assert f"kseq train {recipe.__name__}" in recipe.__doc__


@pytest.mark.slow
@pytest.mark.parametrize("recipe", SMALL, indirect=True)
def test_beside_a_gpu(recipe, config, simulated_gpu):
    """Train, validate, export and load; what trains has holes in its masks."""
    if recipe.__name__ == "classify_documents":
        config = dataclasses.replace(
            config, model="hierarchical", sentence_dropout=0.3
        )
    recipe.main(config)
    assert Path("saved_models/small/1/saved_model.pb").is_file()
