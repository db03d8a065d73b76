import itertools
import json

import pytest

from kseq.answers.describe_task import describe_task
from kseq.runs import RunDirectory
from kseq.runs.model_card import (
    Progress,
    model_card,
    with_scores,
    with_weights,
)

PROGRESS = Progress(
    step=300,
    total_steps=450,
    parameters=1234567,
    command=["python", "a recipe.py", "--units", "8"],
)
TASK = {"preprocessor": {"max_length": 512}, "max_length": 256}
HOSTILE = "a|`b`\n# <img onerror=x>\x1b[2J\u2028](http://x)"


@pytest.fixture
def run(tmp_path):
    run = RunDirectory(tmp_path / "runs" / "dates_1")
    run.path.mkdir(parents=True)
    config = {"train": ["a.de", "a.en"], "validation": [], "units": 8}
    write(run, config=config, task=TASK)
    description = {"class_name": "LSTMSeq2Seq", "config": {"attention": {}}}
    write(run, model=description, environment={"keras": "3.15.1"})
    return run


def card_of(run, progress=PROGRESS):
    return model_card(run, progress, describe_task(run))


def write(run, **files):
    for name, value in files.items():
        getattr(run, name).write_text(json.dumps(value))


def test_what_was_trained_on_what(run):
    card = card_of(run, PROGRESS._replace(facts=["29,000 pairs"]))
    assert card.startswith("# dates\\_1\n")
    for text in (
        "LSTMSeq2Seq, 1,234,567 parameters",
        "300 of 450 steps",
        "    python 'a recipe.py' --units 8\n",
        "    training    a.de\n    training    a.en\n",
        "    validation  held out of training\n    29,000 pairs\n",
        "Not validated yet.",
        "    units = 8\n",
        "    keras 3.15.1\n",
    ):
        assert text in card, text


def test_the_weights_that_are_used(run):
    card = with_weights(card_of(run), "best", 150)
    assert "## Weights\n\nThose of step 150, the best" in card
    card = with_weights(card, "average", 1300)
    assert card.count("## Weights") == 1
    assert "the last of them of step 1,300." in card
    assert card.index("## Weights") < card.index("## Use")
    assert with_weights(card_of(run), "last", 0) == card_of(run)


def test_scores_have_their_signatures(run):
    best = {"step": 150, "val_bleu": 12.345, "val_loss": 1.0}
    signatures = {"bleu": "nrefs:1|tok:13a"}
    card = card_of(
        run, PROGRESS._replace(best=best, signatures=signatures, examples=1000)
    )
    assert "of step 150" in card
    assert "| bleu | 12.35 | nrefs:1\\|tok:13a |" in card
    assert "| loss | 1 |  |" in card
    assert "validated on 1,000 examples" in card


def test_without_files_of_the_user(run):
    write(run, config={"train": "", "validation": ""})
    assert "the built-in corpus" in card_of(run)


def test_how_it_is_used(run):
    card = card_of(run)
    path = run.path
    assert f"    kseq predict {path} < FILE\n" in card
    assert f"    model = kseq.load('{path}')\n" in card
    assert "dates_1:/models/dates_1 -e MODEL_NAME=dates_1 tensor" in card
    assert "| `explain` |" in card
    assert "more than 512 tokens" in card
    assert "at most 256 tokens" in card

    config = {"attention": None}
    write(run, model={"class_name": "LSTMSeq2Seq", "config": config})
    assert "explain" not in card_of(run)


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("audio", ("< PATHS", '[{"b64": "..."}]', "`audio` → `text`,")),
        ("frames", ("--features FILE.npz < NAMES", "model([frames])")),
        ("image", ('model([open("a.jpg", "rb").read()])', "`image`, `target`")),
        (["hostile"], ('model(["..."])', "`text` → `text`,")),
    ],
)
def test_how_other_inputs_are_given(run, source, lines):
    write(run, task={**TASK, "input": source})
    card = card_of(run)
    assert all(line in card for line in lines)


def test_a_model_of_known_answers(run):
    task = {**TASK, "input": "turns", "answers": 1234}
    write(run, task=task)
    card = card_of(run)
    for text in (
        "A model that selects from known answers",
        "the nearest of 1,234 answers",
        "| `encode` | `turns` → `vector` |",
        "| `encode_answers` | `text` of answers → `vector` |",
        "| `score` | `turns`, `target` → `score`",
    ):
        assert text in card, text
    assert "`prefix`" not in card


def test_a_model_of_vectors(run):
    preprocessor = {"class": "VectorPreprocessor", "num_features": 9}
    write(run, task={"input": "vectors", "preprocessor": preprocessor})
    cell = {"class_name": "NeuralTuringMachine"}
    write(run, model={"class_name": "BinaryRNN", "config": {"cell": cell}})
    card = card_of(run)
    for text in (
        "A model that answers with bits",
        f"    kseq predict {run.path} < SEQUENCES\n",
        "model([vectors])",
        "| `serving_default` | `vectors` → `probabilities` of bits |",
        "| `explain` | `vectors` → `probabilities`, `read_weights`,",
        "The scores hold for data similar to that above; evaluate",
    ):
        assert text in card, text
    assert "tokens" not in card.partition("## Limits")[2]

    cell["class_name"] = "StackedRNNCells"
    write(run, model={"class_name": "BinaryRNN", "config": {"cell": cell}})
    assert "explain" not in card_of(run)


def test_a_model_of_tags(run):
    preprocessor = {"class": "WordPreprocessor", "max_words": 500}
    write(run, task={"tags": ["B-to", "O"], "preprocessor": preprocessor})
    card = card_of(run)
    for text in (
        "A model that tags each word",
        "| `serving_default` | `text` → `words`, `tags`, `probabilities`,",
        "| `distribution` | `text` → `words`, `tagset`, ",
        "A sentence of more than 500 words is cut",
        "one of these tags to any word:\n\n    B-to\n    O\n",
    ):
        assert text in card, text
    assert "explain" not in card


def test_a_run_without_any_file(tmp_path):
    card = card_of(RunDirectory(tmp_path))
    assert "unknown, 1,234,567 parameters" in card
    assert "## Use" not in card


def test_what_users_have_named_stays_code_in_one_line(run):
    write(run, task={"labels": ["fine", HOSTILE]})
    write(run, config={"train": HOSTILE, "validation": HOSTILE, "run": HOSTILE})
    write(run, environment={"machine": HOSTILE})
    card = card_of(run, PROGRESS._replace(command=[HOSTILE], facts=[HOSTILE]))
    card = with_scores(card, HOSTILE, [f"{HOSTILE}: precision 1"])
    hostile = [line for line in card.split("\n") if "<img" in line]
    assert len(hostile) == 11
    assert all(line.startswith("    ") for line in hostile)
    paragraphs = card.split("\n\n")
    for before, block in itertools.pairwise(paragraphs):
        if block.startswith("    "):  # else it would be no code
            assert not before.startswith("- "), block
    assert "\x1b" not in card
    assert "\u2028" not in card
