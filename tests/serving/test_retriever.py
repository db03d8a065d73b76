"""The nearest of many answers: from a model, a run and an export."""

import json
import shutil
import sys

import numpy as np
import pytest
import tensorflow as tf

import kseq
from kseq.data import teacher_forcing
from kseq.decoding import GreedySearch
from kseq.loading import load_run
from kseq.runs import RunDirectory, RunError
from kseq.serving import GeneratorPredictor, Retriever
from kseq.user_error import UserError
from tests.commands.saved_run import Config
from tests.serving.conftest import LINES

TEXTS = ["the cat", "", "日本 a dog", "12 bones", " \t "]
BLANK = [1, 4]


@pytest.fixture(scope="module")
def run(retriever, run_of):
    return run_of(retriever)


@pytest.fixture(scope="module")
def predictors(run, retriever_export):
    """Of a run of the retriever, and of its export."""
    return kseq.load(run), kseq.load(retriever_export.parent)


@pytest.fixture(scope="module")
def vectors_of(retriever):
    """A function: the vectors of texts, one by one, by the model itself."""
    signature = [tf.TensorSpec((1, None), tf.int32)]
    encode = tf.function(
        retriever.model.encode_target, signature, autograph=False
    )

    def vectors_of(texts):
        rows = []
        for text in texts:
            labels, _ = retriever.tokenizer.tokenize_with_end([text], 31)
            rows.append(encode(teacher_forcing(labels.to_tensor()))[0])
        return np.stack(rows)

    return vectors_of


@pytest.fixture(scope="module")
def answer_vectors(retriever, vectors_of):
    return vectors_of(retriever.answers)


def test_the_index_has_each_answer_in_its_place(retriever, answer_vectors):
    assert retriever.index.shape == (25, 8)
    np.testing.assert_allclose(retriever.index, answer_vectors, atol=1e-5)


def test_answers_are_the_nearest(retriever, predictors, answer_vectors):
    source = retriever.preprocessor(TEXTS)
    vectors = retriever.model.encode_source(source.inputs).numpy()
    cosines = vectors @ answer_vectors.T
    for predictor in predictors:
        assert isinstance(predictor, GeneratorPredictor)
        answers, n_best = predictor(TEXTS), predictor.n_best(TEXTS, 20)
        for row, found in enumerate(n_best):
            assert found[0].text == answers[row]
            if row in BLANK:
                assert found == [("", 0.0)]
                continue
            order = np.argsort(-cosines[row])[:20]
            assert [h.text for h in found] == [
                retriever.answers[place] for place in order
            ]
            np.testing.assert_allclose(
                [h.score for h in found], cosines[row, order], atol=1e-5
            )


@pytest.mark.slow
def test_scores_are_of_any_answer(predictors, vectors_of):
    targets = ["12 bones", "", "never seen", "größer", "a"]
    for predictor in predictors:
        scores = predictor.scores(TEXTS, targets)
        assert scores[1] == 0
        assert scores[4] != 0
        vectors = predictor.encode(TEXTS), predictor.encode_answers(targets)
        cosines = np.sum(vectors[0] * vectors[1], axis=1)
        np.testing.assert_allclose(scores[2:], cosines[2:], atol=1e-5)
        best = predictor.answers(TEXTS[:1])[0].hypotheses[0]
        [score] = predictor.scores(TEXTS[:1], [best.text])
        assert score == pytest.approx(best.score, abs=1e-5)
        assert predictor.log_probs(TEXTS, targets) is None
    np.testing.assert_allclose(vectors[1], vectors_of(targets), atol=1e-5)


def test_what_is_cut_is_said(predictors):
    for predictor in predictors:
        answers = predictor.answers(["日本 a dog " * 40, "a"])
        assert [answer.truncated for answer in answers] == [True, False]
        found = predictor.scores_and_cuts(["a", "a"], ["the cat " * 9, "a"])
        assert [cut for _, cut in found] == [True, False]


def test_what_it_does_not_have_is_one_message(predictors):
    for predictor in predictors:
        for encode in (predictor.encode, predictor.encode_answers):
            with pytest.raises(ValueError, match="at least one text"):
                encode([])
        with pytest.raises(UserError, match=r"^n_best=21 is more than the 20 "):
            predictor.n_best(TEXTS, 21)
        for name, ask in {
            "prefix": lambda: predictor(TEXTS, prefixes=TEXTS),  # noqa: B023
            "explain": lambda: predictor.explain(TEXTS),  # noqa: B023
        }.items():
            with pytest.raises(UserError, match=f"no signature {name}; it has"):
                ask()


def test_fewer_answers_than_n_best_gives(retriever):
    few = Retriever(
        *(retriever.model, retriever.preprocessor, retriever.tokenizer),
        LINES[:2],
    )
    assert len(few.predictor().n_best(["the cat"], 2)[0]) == 2
    with pytest.raises(UserError, match="more than the 2 answers"):
        few.predictor().n_best(["the cat"], 3)


@pytest.mark.slow
def test_the_index_is_that_of_the_weights_when_it_is_needed(retriever, run):
    """Not of those when the retriever is made, before training."""
    again = load_run(run)
    again._index = None
    again.model.target_projection.projection.kernel.assign_add(
        np.ones((12, 8), "float32")
    )
    labels, _ = again.tokenizer.tokenize_with_end(again.answers[:1], 31)
    vectors = again.model.encode_target(teacher_forcing(labels.to_tensor()))
    np.testing.assert_allclose(again.index[:1], vectors, atol=1e-5)
    assert np.abs(again.index - retriever.index).max() > 1e-3


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ([], "There must be at least one answer"),
        ([""], "must be one line of text"),
        (["a", " \t"], "must be one line of text"),
        (["a\nb"], "must be one line of text"),
        (["a", 5], "must be one line of text. Received: answer=5"),
        (["a", "b", "a"], "must be unique. Received: 'a' twice"),
    ],
)
def test_answers_that_are_refused(retriever, answers, message):
    parts = retriever.model, retriever.preprocessor, retriever.tokenizer
    with pytest.raises(ValueError, match=message):
        Retriever(*parts, answers)
    with pytest.raises(ValueError, match="Received: max_length=1"):
        Retriever(*parts, ["a"], max_length=1)


def test_the_export_describes_itself(retriever_export, retriever):
    path = retriever_export / "assets.extra" / "kseq.json"
    description = json.loads(path.read_text())
    assert description["answers"] == 25
    assert description["preprocessor"]["class"] == "TextPreprocessor"
    assert description["parameters"] == retriever.model.count_params()


@pytest.fixture
def copy(run, tmp_path):
    return RunDirectory(shutil.copytree(run, tmp_path / "run"))


@pytest.fixture
def model_is_made(retriever, monkeypatch):
    """To make the model of each copy again takes most of a second."""
    module = sys.modules["kseq.loading.load_run"]  # not the function
    monkeypatch.setattr(module, "load_model", lambda *_, **__: retriever.model)


def test_a_run_takes_no_search(copy):
    with pytest.raises(RunError, match="search is only for models"):
        load_run(copy, search=GreedySearch())


def test_the_same_answers_resume(retriever, generators, copy):
    copy.start(Config())
    copy.save(retriever)
    copy.answers.write_text("other\n")
    with pytest.raises(RunError, match=r"answers\.txt differs from"):
        copy.save(retriever)
    copy.start(Config(), overwrite=True)
    copy.save(generators["lstm"])
    assert not copy.answers.exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read"),
        (b"", "has 0 lines"),
        (b"a\n" * 24, "has 24 lines, but .* says answers=25"),
        (b"a\n" * 25 + b"b", "has 25 lines"),
        (b"a\n" * 25, "must be unique"),
        (b"\xff\n" * 25, "is broken: 'utf-8'"),
        (b"\n" * 25, "must be one line of text"),
    ],
)
def test_broken_answers_are_one_message(copy, model_is_made, content, message):
    copy.answers.unlink()
    if content is not None:
        copy.answers.write_bytes(content)
    with pytest.raises(RunError, match=message) as caught:
        kseq.load(copy.path)
    assert str(copy.answers) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        {"answers": "25"},
        {"answers": None},
        {"answers": 24},
        {"max_length": 1},
        {"max_length": None},
        {"labels": ["a"]},
        {"preprocessor": {"class": "FeaturePreprocessor", "num_features": 3}},
    ],
    ids=str,
)
def test_a_broken_task_is_one_message(copy, model_is_made, change):
    task = json.loads(copy.task.read_text())
    copy.task.write_text(json.dumps(task | change))
    with pytest.raises(UserError, match=r"task\.json"):
        kseq.load(copy.path)


@pytest.mark.slow
def test_a_model_or_a_tokenizer_of_another_run(copy, generators, run_of):
    other = RunDirectory(run_of(generators["lstm"]))
    task = other.task.read_text()
    other.task.write_text(copy.task.read_text())
    shutil.copy(copy.answers, other.answers)
    with pytest.raises(RunError, match="has no encode_target"):
        kseq.load(other.path)
    copy.task.write_text(task)
    with pytest.raises(RunError, match="has no decode_step"):
        kseq.load(copy.path)
    copy.task.write_text(other.task.read_text())
    shutil.copy(copy.tokenizer("source"), copy.tokenizer("target"))
    with pytest.raises(RunError, match="target_vocab_size="):
        kseq.load(copy.path)


def test_as_tensorflow_serving_loads_it(retriever_export, predictors):
    """Its variables, the index among them, are found in a session."""
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        model = v1.saved_model.loader.load(
            session, ["serve"], str(retriever_export)
        )
        signature = model.signature_def["n_best"]
        texts = session.run(
            signature.outputs["texts"].name,
            {signature.inputs["text"].name: TEXTS},
        )
    found = predictors[0].n_best(TEXTS, 20)
    for row, hypotheses in zip(texts, found, strict=True):
        decoded = [text.decode() for text in row[: len(hypotheses)]]
        assert decoded == [h.text for h in hypotheses]
