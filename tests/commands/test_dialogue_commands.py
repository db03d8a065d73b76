"""Commands on models that answer in dialogues."""

import json
import os
import pty
import sys

import keras
import pytest

from kseq import cli, data, decoding, layers, models, serving
from kseq.control_tokens import END, UNK
from tests.commands.saved_run import saved_run

pytestmark = pytest.mark.slow  # their road is that of a translator

DIALOGUES = [
    ["Hi!", "Hello, who are you?", "I am Ann.", "Hello, Ann!"],
    ["Is it cold?", "No, it is warm.", "Good."],
]
LINES = b"Hi!\tHello, who are you?\n\nGood.\nHi!\t \tIs it cold?\n"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A hierarchical model: its run and its export, and a file."""
    root = tmp_path_factory.mktemp("dialogues")
    lines = [json.dumps({"turns": turns}) for turns in DIALOGUES]
    (root / "dialogues.jsonl").write_text("\n".join(lines))
    texts = [turn for turns in DIALOGUES for turn in turns]
    tokenizer = data.Tokenizer.train(texts, 100, "char")
    model = models.LSTMSeq2Seq(
        *(tokenizer.vocab_size, tokenizer.vocab_size),
        embedding_dim=8,
        units=8,
        num_encoder_layers=0,
        source_layer=layers.HierarchicalEncoder(8),
        attention=layers.HierarchicalBahdanauAttention(4),
        order="bahdanau",
    )
    keras.utils.set_random_seed(3)  # the answers differ
    for weight in model.trainable_variables:
        weight.assign(keras.random.normal(weight.shape))
    bias = model.projection.bias.numpy()
    bias[[UNK, END]] -= 50  # no answer is empty
    model.projection.bias.assign(bias)
    preprocessor = data.DialoguePreprocessor(
        tokenizer, max_turns=3, nested=True
    )
    greedy = decoding.GreedySearch()  # it is traced sooner than a beam
    generator = serving.Generator(
        model, preprocessor, tokenizer, greedy, max_length=9
    )
    run = saved_run(generator, root / "runs" / "chat")
    export = root / "saved_models" / "chat"
    assert cli.main(["export", str(run), "--to", str(export)]) == 0
    return run, export, root / "dialogues.jsonl"


def test_a_line_is_a_dialogue(served, predict):
    _, export, _ = served
    found, notes = predict(export, LINES)
    assert notes == ""
    assert len(found) == 4
    assert found[1] == ""
    assert len({*found}) == 4
    for line, answer in zip(LINES.split(b"\n"), found, strict=False):
        assert predict(export, line + b"\n")[0] == [answer]
    # A blank turn is none, and the oldest turns are forgotten.
    assert predict(export, b"\tHi!\tIs it cold?\t")[0] == found[3:]
    longer = b"Yes.\tNo.\tHi!\tHello, who are you?\tGood."
    recent = b"Hi!\tHello, who are you?\tGood."
    assert predict(export, longer)[0] == predict(export, recent)[0]
    as_json = b'{"turns": ["Hi!", "Is it cold?"]}\n{"turns": []}\n'
    assert predict(export, as_json)[0] == [found[3], ""]


@pytest.mark.slow  # as a translator's in test_predict.py
def test_a_run_answers_as_its_export_does(served, call, predict):
    run, export, file = served
    assert predict(run, LINES) == predict(export, LINES)
    printed, _ = call("evaluate", run, file)
    assert call("evaluate", export, file)[0] == printed
    page, _ = call("explain", run, text=LINES)
    assert page.count("<article") == 4


def test_in_python_an_input_is_a_list_of_turns(served, predict, load):
    chatbot = load(served[1])
    turns = [
        ["Hi!", "Hello, who are you?"],
        [],
        "Good.",
        ["Hi!", "Is it cold?"],
    ]
    assert chatbot(turns) == predict(served[1], LINES)[0]


def test_attention_knows_the_turns(served, predict, load):
    _, export, _ = served
    (record, *_), _ = predict(export, LINES, "--json", "--attention")
    attention = json.loads(record)["attention"]
    assert attention["source_tokens"].count("</s>") == 2
    [found] = load(export).attention([["Hi!", "Good."]])
    assert found.turn_weights.shape == (len(found.target_tokens), 2)
    assert found._repr_png_().startswith(b"\x89PNG")


def test_evaluate_and_explain(served, call, refused):
    _, export, file = served
    printed, _ = call("evaluate", export, file)
    for name in ("BLEU ", "distinct-1 ", "distinct-2 ", " per token, "):
        assert name in printed
    page, _ = call("explain", export, text=LINES)
    assert page.count("<article") == 4
    assert "turns: 1 <i>" in page
    assert "one file of them" in refused("evaluate", export, file, file)
    assert "--audio is not for" in refused(
        "evaluate", export, file, "--audio", "."
    )


def test_score_is_that_of_the_model(served, call, tmp_path, load):
    _, export, _ = served
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(b"Hi!\tHello, who are you?\nGood.\n")
    target.write_text("I am Ann.\nNo.\n")
    found, _ = call("score", export, source, target)
    expected = load(export).scores(
        [["Hi!", "Hello, who are you?"], ["Good."]], ["I am Ann.", "No."]
    )
    assert [*map(float, found.split())] == pytest.approx(expected, abs=1e-4)
    source.write_bytes(
        b'{"turns": ["Hi!", "Hello, who are you?"]}\n{"turns": ["Good."]}\n'
    )
    assert call("score", export, source, target)[0] == found


LIKELIEST = ("--sample", "--top-p", "0.000001")
DRAWN = ("--sample", "--temperature", "2", "--top-p", "0.9", "--seed")


def test_chat_remembers_until_it_is_told_to_forget(served, call, load):
    _, export, _ = served
    text = b"Hi!\n\nGood.\n /reset \nHi!\n"
    said, notes = call("chat", export, *LIKELIEST, text=text)
    first, second, third = said.split("\n")[:-1]
    assert notes == ""
    assert third == first
    chatbot = load(export)
    assert [first, second] == chatbot([["Hi!"], ["Hi!", first, "Good."]])


@pytest.mark.slow
def test_chat_samples(served, call):
    """Without a seed an export draws a new one."""
    run, export, _ = served
    said = {
        call("chat", run, "--seed", seed, text=b"Hi!\n")[0] for seed in (1, 2)
    }
    assert len(said) > 1
    hot = ("--temperature", "9")
    said = [
        call("chat", export, *hot, "--seed", n, text=b"Hi!\n")[0]
        for n in (1, 2)
    ]
    assert len({*said}) == 2
    same = ("--sample", "--top-p", "0.9")
    for n, expected in enumerate(said, 1):
        found = call("chat", export, *same, *hot, "--seed", n, text=b"Hi!\n")
        assert found[0] == expected
        answer, _ = call("chat", run, *hot, "--seed", n, text=b"Hi!\n")
        assert answer == expected


@pytest.mark.slow
def test_an_export_draws_the_answers_of_its_run(served, predict, refused):
    run, export, _ = served
    found, _ = predict(run, LINES, *DRAWN, 5)
    assert predict(export, LINES, *DRAWN, 5)[0] == found
    assert predict(export, LINES, *DRAWN, 6)[0] != found
    (record, *_), _ = predict(export, LINES, *DRAWN, 5, "--json", "--attention")
    drawn = json.loads(record)
    assert drawn["text"] == found[0]
    pieces = drawn["attention"]["target_tokens"]
    assert "".join(pieces[:3]).replace("▁", " ").strip() in found[0]
    for more in (("--n-best", "2"), ("--top-k", "5"), ("--greedy",)):
        refused("predict", export, *DRAWN, 5, *more)


def test_chat_on_a_terminal(served, monkeypatch, capfd, load):
    _, export, _ = served
    parent, child = pty.openpty()
    with open(child) as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        os.write(parent, b"Hi!\n\x04")
        assert cli.main(["chat", str(export), *LIKELIEST]) == 0
    os.close(parent)
    output, notes = capfd.readouterr()
    assert load(export)([["Hi!"]])[0] in output
    assert "/reset clears" in notes


def test_models_that_are_not_talked_to(classifier_run, refused):
    assert "needs a dialogue model" in refused("chat", classifier_run)


def test_check_counts_dialogues(served, call):
    printed, _ = call(
        "check", served[2], "--validation", served[2], "--dialogues"
    )
    assert "dialogues" in printed
    assert "too high" in printed
