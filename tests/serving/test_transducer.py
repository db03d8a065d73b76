"""Bits for vectors: the model, its run and its export."""

import json
import shutil

import keras
import numpy as np
import pytest

import kseq
from kseq.data import VectorPreprocessor
from kseq.decoding import GreedySearch
from kseq.layers import NeuralTuringMachine
from kseq.loading import load_export
from kseq.models import BinaryRNN
from kseq.runs import RunDirectory
from kseq.serving import Transducer, TransducerPredictor, export
from kseq.user_error import UserError

LENGTHS = (3, 0, 1, 5)


def transducer_of(cell):
    keras.utils.set_random_seed(1)
    model = BinaryRNN(3, 2, cell)
    for weight in model.trainable_variables:
        weight.assign(keras.random.normal(weight.shape))
    return Transducer(model, VectorPreprocessor(3))


@pytest.fixture(scope="module")
def transducer():
    sizes = {"slots": 6, "slot_dim": 4, "read_heads": 2, "controller_units": 5}
    return transducer_of(NeuralTuringMachine(4, **sizes))


@pytest.fixture(scope="module")
def run(transducer, run_of):
    return run_of(transducer)


@pytest.fixture(scope="module")
def exported(transducer, tmp_path_factory):
    return export(transducer, tmp_path_factory.mktemp("saved_models"))


@pytest.fixture(scope="module")
def opened(run, exported):
    """Of the same run, and of its export."""
    return kseq.load(run), kseq.load(exported)


@pytest.fixture(scope="module")
def without_memory(run_of):
    return kseq.load(run_of(transducer_of(keras.layers.LSTMCell(4))))


@pytest.fixture(scope="module")
def sequences():
    draw = np.random.default_rng(1)
    return [draw.normal(size=(length, 3)) for length in LENGTHS]


def assert_close(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_the_same_answers_whatever_is_opened(transducer, opened, sequences):
    expected = [np.zeros((0, 2))] * len(sequences)
    for place in np.flatnonzero(LENGTHS):
        source = sequences[place][None].astype("float32")
        logits = transducer.model({"source": source})
        expected[place] = keras.ops.sigmoid(logits)[0]
    for predictor in opened:
        assert isinstance(predictor, TransducerPredictor)
        assert predictor.num_features == 3
        assert predictor.signatures.keys() == transducer.signatures.keys()
        found = predictor(sequences)
        assert [each.shape for each in found] == [(n, 2) for n in LENGTHS]
        assert_close(found, expected)
        assert predictor([]) == []
    assert [predictor.model is None for predictor in opened] == [False, True]


def test_padding_changes_nothing(opened, sequences):
    predictor, _ = opened
    together = predictor(sequences)
    assert_close([predictor([each])[0] for each in sequences], together)
    predictor.batch_size = 2
    assert_close(predictor(sequences), together)
    predictor.batch_size = 32

    padded = np.full((1, 7, 3), np.nan, "float32")
    padded[0, :5] = sequences[3]
    served = predictor.signatures["serving_default"]
    found = served(vectors=padded)["probabilities"]
    assert_close([found[0, :5]], together[3:])


def test_nested_lists_are_sequences_too(opened, sequences):
    predictor, _ = opened
    lists = [sequence.tolist() for sequence in sequences]
    assert_close(predictor(lists), predictor(sequences))


def test_explains_where_it_reads_and_writes(opened, sequences):
    answers = opened[0](sequences)
    of_run, of_export = (each.explain(sequences) for each in opened)
    for use, other, length, answer in zip(
        of_run, of_export, LENGTHS, answers, strict=True
    ):
        assert use.read_weights.shape == (length, 2, 6)
        assert use.write_weights.shape == (length, 1, 6)
        assert_close([use.probabilities], [answer])
        assert_close(use[:4], other[:4])
        for weights in (use.read_weights, use.write_weights):
            np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-5)
        assert use.truncated is False
    assert of_run[2]._repr_png_().startswith(b"\x89PNG\r\n")
    page = opened[1].page(of_export)
    assert page.count("<article") == 4
    assert page.count("<img") == 3


def test_answers_are_json(opened, sequences):
    plain = opened[0].answers(sequences)
    explained = opened[1].answers(sequences, attention=True)
    found = opened[0](sequences)
    for one, other, ones in zip(plain, explained, found, strict=True):
        [(text, score)] = one.hypotheses
        bits = json.loads(text)
        assert bits == (ones > 0.5).astype(int).tolist()
        assert " " not in text
        expected = np.log(np.where(ones > 0.5, ones, 1 - ones)).sum()
        assert score == pytest.approx(expected, abs=1e-4)
        assert not one.truncated
        assert one.explanation is None

        record = json.loads(json.dumps(other.record))
        memory = record.pop("memory")
        assert record.keys() == one.record.keys()
        assert record["bits"] == bits
        np.testing.assert_allclose(
            np.reshape(record["probabilities"], ones.shape), ones, atol=2e-5
        )
        assert record["score"] == pytest.approx(expected, abs=1e-4)
        assert np.shape(memory["read_weights"])[:1] == (len(bits),)
        assert other.explanation.to_json() == memory
    assert (plain[1].hypotheses[0].text, plain[1].record["score"]) == ("[]", 0)


@pytest.mark.parametrize(
    ("sequence", "message"),
    [
        (np.zeros((2, 4)), r"vectors of 3 numbers; found the shape \(2, 4\)"),
        ([[1, 2, 3], [4, 5]], "not an array of numbers"),
        ("abc", "not an array of numbers"),
        ([[1, 2, float("nan")]], "expected finite numbers"),
    ],
)
def test_wrong_inputs_are_one_message(opened, sequence, message):
    for predictor in opened:
        for method in (predictor, predictor.explain, predictor.answers):
            with pytest.raises(UserError, match=message) as caught:
                method([np.zeros((1, 3)), sequence])
            assert "\n" not in str(caught.value)


def test_one_answer_without_a_prefix(opened, sequences):
    for options in ({"n_best": 2}, {"prefixes": ["0"] * 4}):
        with pytest.raises(UserError, match="one answer, without a prefix"):
            opened[0].answers(sequences, **options)
    with pytest.raises(ValueError, match="Received: n_best=0"):
        opened[0].answers(sequences, n_best=0)


def test_without_a_memory_there_is_nothing_to_explain(
    without_memory, sequences
):
    assert without_memory(sequences)[0].shape == (3, 2)
    assert without_memory.signatures.keys() == {"serving_default"}
    with pytest.raises(UserError, match="no memory to show"):
        without_memory.explain(sequences)
    with pytest.raises(UserError, match="no memory to show"):
        without_memory.answers(sequences, attention=True)


def test_a_search_is_refused(run):
    with pytest.raises(UserError, match="returns bits; a search is only"):
        kseq.load(run, search=GreedySearch())


def test_sizes_belong_together(transducer):
    with pytest.raises(ValueError, match="input_dim=3, num_features=4"):
        Transducer(transducer.model, VectorPreprocessor(4))


@pytest.mark.parametrize(
    ("preprocessor", "message"),
    [
        ({"num_features": 4}, "does not fit: .*num_features=4"),
        ({"num_features": 0}, "does not fit: .*num_features=0"),
        ({"num_features": "3"}, "does not fit: .*num_features='3'"),
        ({}, "does not fit: "),
    ],
)
def test_a_broken_task_is_one_message(run, tmp_path, preprocessor, message):
    copy = RunDirectory(shutil.copytree(run, tmp_path / "run"))
    task = {"preprocessor": {"class": "VectorPreprocessor", **preprocessor}}
    copy.task.write_text(json.dumps(task))
    with pytest.raises(UserError, match=f"{copy.task} {message}") as caught:
        kseq.load(copy.path)
    assert "\n" not in str(caught.value)


def test_a_task_of_another_model(run, generators, run_of, tmp_path):
    copy = RunDirectory(shutil.copytree(run, tmp_path / "run"))
    shutil.copy(run_of(generators["lstm"]) / "model.json", copy.model)
    last = copy.checkpoints / "last"
    shutil.rmtree(last)
    shutil.copytree(run_of(generators["lstm"]) / "checkpoints" / "last", last)
    with pytest.raises(UserError, match="LSTMSeq2Seq has no weightings"):
        kseq.load(copy.path)


@pytest.mark.parametrize(
    "changes", [{"slots": 10**9}, {"units": 10**6}, {"controller_units": 10**6}]
)
def test_a_larger_cell_is_refused(run, tmp_path, changes):
    """At once, and nothing is allocated for it."""
    copy = RunDirectory(shutil.copytree(run, tmp_path / "run"))
    description = json.loads(copy.model.read_text())
    description["config"]["cell"]["config"] |= changes
    copy.model.write_text(json.dumps(description))
    with pytest.raises(UserError, match=r"does not fit the weights|can make"):
        kseq.load(copy.path)


def test_an_export_describes_itself(exported, tmp_path):
    path = shutil.copytree(exported, tmp_path / "1")
    content = (path / "assets.extra" / "kseq.json").read_text("utf-8")
    description = json.loads(content)
    assert description["input"] == "vectors"
    assert description["preprocessor"] == {
        "class": "VectorPreprocessor",
        "num_features": 3,
    }
    (path / "assets.extra" / "kseq.json").unlink()
    assert load_export(path).num_features == 3  # it is in the graph
