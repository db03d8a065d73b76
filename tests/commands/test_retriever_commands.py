"""Commands on models that find an answer among those that they know."""

import json

import keras
import pytest

from kseq import cli, data, models, serving
from tests.commands.saved_run import saved_run

pytestmark = pytest.mark.slow  # the retriever itself is tested in serving

DIALOGUES = [
    ["Hi!", "Hello, who are you?", "I am Ann.", "Hello, Ann!"],
    ["Is it cold?", "No, it is warm.", "Good."],
]
LINES = b"Hi!\tHello, who are you?\n\nGood.\nHi!\t \tIs it cold?\n"


@pytest.fixture(scope="module")
def answers():
    return [turn for turns in DIALOGUES for turn in turns[1:]]


@pytest.fixture(scope="module")
def paths(tmp_path_factory, answers):
    """Of an untrained run, of its export, and of a file of dialogues."""
    root = tmp_path_factory.mktemp("retrieval")
    lines = [json.dumps({"turns": turns}) for turns in DIALOGUES]
    (root / "dialogues.jsonl").write_text("\n".join(lines))
    keras.utils.set_random_seed(1)
    tokenizer = data.Tokenizer.train(answers, 290, "bpe")
    model = models.DualEncoder(
        tokenizer.vocab_size, embedding_dim=8, units=8, dim=8
    )
    for weight in model.trainable_variables:
        weight.assign(keras.random.normal(weight.shape))
    preprocessor = data.DialoguePreprocessor(tokenizer, max_turns=3)
    retriever = serving.Retriever(model, preprocessor, tokenizer, answers)
    run = saved_run(retriever, root / "runs" / "retrieval")
    export = root / "saved_models" / "retrieval"
    assert cli.main(["export", str(run), "--to", str(export)]) == 0
    return run, export, root / "dialogues.jsonl"


def test_a_known_answer_for_each_line(paths, predict, answers):
    run, export, _ = paths
    found, notes = predict(run, LINES)
    assert notes == ""
    assert found[1] == ""
    assert {*found} <= {"", *answers}
    assert predict(export, LINES)[0] == found
    for path in (run, export):
        rows, _ = predict(path, LINES, "--n-best", "5", "--scores")
        for row, best in zip(rows, found, strict=True):
            scores, texts = row.split("\t")[::2], row.split("\t")[1::2]
            assert texts[0] == best
            assert sorted(texts) == sorted(answers if best else [""])
            assert sorted(map(float, scores), reverse=True) == [
                *map(float, scores)
            ]


def test_score_is_that_of_predict(paths, call, predict, tmp_path):
    run, export, _ = paths
    rows, _ = predict(run, LINES, "--scores")
    scores, texts = zip(*(row.split("\t") for row in rows), strict=True)
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(LINES)
    target.write_text("\n".join(texts))
    for path in (run, export):
        found, _ = call("score", path, source, target)
        assert list(map(float, found.split())) == pytest.approx(
            list(map(float, scores)), abs=2e-4
        )


def test_evaluation_prints_recalls(paths, call):
    run, export, file = paths
    printed, _ = call("evaluate", run, file)
    recalls, note = printed.splitlines()[:3], printed.splitlines()[3]
    for line, top in zip(recalls, (1, 5, 10), strict=True):
        assert line.startswith(f"recall@{top} ")
        assert line.endswith(" %  candidates:5|seed:0")
    assert recalls[1].startswith("recall@5 100.00 %")
    assert note.startswith("fewer than 100 candidates")
    assert call("evaluate", export, file)[0] == printed


def test_chat_answers_with_what_it_knows(paths, call, answers):
    run, export, _ = paths
    for path in (run, export):
        said, notes = call("chat", path, text=b"Hi!\nGood.\n")
        assert notes == ""
        assert {*said.splitlines()} <= {*answers}
        assert len(said.splitlines()) == 2


def test_inspect_counts_the_answers(paths, call):
    for path in paths[:2]:
        facts, _ = call("inspect", path)
        assert "answers              5\n" in facts
    assert "encode_answers" in facts


def test_bad_commands_are_one_message(paths, call, refused):
    run, export, file = paths
    for path in (run, export):
        for options, message in (
            (["--n-best=6"], "--n-best 6 is more than the 5 answers that the"),
            (["--prefix", file], "--prefix needs a signature prefix; "),
            (["--json", "--attention"], "--attention needs a signature expl"),
        ):
            _, notes = call("predict", path, *options, text=b"a\n", code=2)
            assert message in notes
            assert notes.count("\n") == 1
        assert "explain needs a signature explain" in refused("explain", path)
    for option in ("--sample", "--greedy", "--beam-size=2"):
        message = refused("predict", run, option)
        assert "a search is only for models that generate text" in message
