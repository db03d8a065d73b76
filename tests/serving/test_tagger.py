"""Tags for words: the model, its run and its export."""

import json
import math
import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf
from scipy.special import softmax

import kseq
from kseq.data import Tokenizer, WordPreprocessor
from kseq.data.tags.journeys import journeys
from kseq.decoding import GreedySearch
from kseq.loading import load_export
from kseq.models import LSTMTagger, TransformerTagger
from kseq.runs import RunDirectory
from kseq.runs.calibration import write_temperature
from kseq.serving import Tagger, TaggerPredictor, export
from kseq.user_error import UserError
from tests.slow import slow

TAGS = ("O", "größer", "x")
TEXTS = [
    "from Oslo to  New York",
    "",
    "Straße\u00a0über \t 日本語 😀 \x00",
    "  ",
    "to " * 70,
    "Oslo",
]
MODELS = {
    "lstm": lambda size: LSTMTagger(
        size, 3, embedding_dim=6, units=8, num_layers=1
    ),
    "transformer": lambda size: TransformerTagger(
        size, 3, num_layers=1, model_dim=8, ffn_dim=8, num_heads=2
    ),
}


@pytest.fixture(scope="module")
def preprocessor():
    tokenizer = Tokenizer.train(journeys("train", size=200).texts, 330)
    return WordPreprocessor(tokenizer, max_words=60)


@pytest.fixture(
    scope="module",
    params=["lstm", slow("transformer")],
)
def tagger(request, preprocessor):
    keras.utils.set_random_seed(1)
    model = MODELS[request.param](preprocessor.vocab_size)
    for weight in model.trainable_variables:
        weight.assign(keras.random.normal(weight.shape))
    model.classes.bias.assign(keras.ops.zeros(3))
    return Tagger(model, preprocessor, TAGS)


@pytest.fixture(scope="module")
def run(tagger, run_of):
    return run_of(tagger)


@pytest.fixture(scope="module")
def exported(tagger, tmp_path_factory):
    return export(tagger, tmp_path_factory.mktemp("saved_models"))


@pytest.fixture(scope="module")
def opened(run, exported):
    """Of the same run, and of its export."""
    return kseq.load(run), kseq.load(exported)


def words_of(text):
    return text.encode().split()[:60]


def test_the_same_answers_whatever_is_opened(tagger, opened):
    expected = tagger.predictor()(TEXTS)
    assert [len(tags) for tags in expected] == [
        len(words_of(text)) for text in TEXTS
    ]
    probabilities = np.concatenate(tagger.predictor().probabilities(TEXTS))
    assert np.ptp(probabilities, axis=0).max() > 1e-3
    for predictor in opened:
        assert isinstance(predictor, TaggerPredictor)
        assert predictor(TEXTS) == expected
        assert predictor([text.encode() for text in TEXTS]) == expected
        assert predictor.tags == [*TAGS]
        assert predictor.signatures.keys() == tagger.signatures.keys()
        assert predictor([]) == predictor.answers([]) == []
    assert [predictor.model is None for predictor in opened] == [False, True]


def test_a_sentence_has_the_same_tags_alone(opened):
    predictor, _ = opened
    together = predictor.probabilities(TEXTS)
    for text, expected in zip(TEXTS, together, strict=True):
        [alone] = predictor.probabilities([text])
        assert alone.shape == (len(words_of(text)), 3)
        np.testing.assert_allclose(alone, expected, atol=1e-5)
    predictor.batch_size = 2
    for one, other in zip(
        predictor.probabilities(TEXTS), together, strict=True
    ):
        np.testing.assert_allclose(one, other, atol=1e-5)
    predictor.batch_size = None


def test_served_tensors(opened):
    """Padding is empty; the tag of a word is the likeliest one."""
    for predictor in opened:
        served = predictor.signatures["serving_default"]
        every = predictor.signatures["distribution"]
        text = tf.constant(TEXTS)
        found = {k: v.numpy() for k, v in served(text=text).items()}
        all_of_them = {k: v.numpy() for k, v in every(text=text).items()}
        is_word = found["words"] != b""
        assert found["words"].shape == (6, 60)
        np.testing.assert_array_equal(is_word, found["tags"] != b"")
        np.testing.assert_array_equal(is_word, found["probabilities"] > 0)
        probabilities = all_of_them["probabilities"]
        np.testing.assert_allclose(
            found["probabilities"][is_word],
            probabilities.max(axis=-1)[is_word],
            rtol=1e-6,
        )
        tags = np.array(TAGS)[probabilities.argmax(axis=-1)]
        assert [tag.decode() for tag in found["tags"][is_word]] == [
            *tags[is_word]
        ]
        assert all_of_them["tagset"][5].tolist() == [t.encode() for t in TAGS]
        assert found["truncated"].tolist() == [n == 4 for n in range(6)]
        blank = served(text=tf.constant([""]))
        assert blank["tags"].numpy().tolist() == [[b""]]
        assert served(text=tf.constant([], tf.string))["tags"].shape[0] == 0


def test_answers_are_lines(opened):
    for predictor in opened:
        tags = predictor(TEXTS)
        for answer, expected in zip(
            predictor.answers(TEXTS), tags, strict=True
        ):
            [(text, score)] = answer.hypotheses
            assert text == " ".join(expected)
            record = json.loads(json.dumps(answer.record))
            assert record["tags"] == expected
            assert len(record["words"]) == len(expected)
            assert score == pytest.approx(
                np.sum(np.log(record["probabilities"])), abs=1e-3
            )
            assert answer.truncated == (len(expected) == 60)
            assert score == pytest.approx(record["score"], abs=1e-5)


def test_what_a_tagger_does_not_do(opened, run):
    for predictor in opened:
        for options in ({"n_best": 2}, {"prefixes": ["O"] * 6}):
            with pytest.raises(UserError, match="one answer, without a"):
                predictor.answers(TEXTS, **options)
        with pytest.raises(ValueError, match="Received: n_best=0"):
            predictor.answers(TEXTS, n_best=0)
        with pytest.raises(UserError, match="no attention to show"):
            predictor.explain(TEXTS)
        with pytest.raises(UserError, match="no attention to show"):
            predictor.answers(TEXTS, attention=True)
    with pytest.raises(UserError, match="returns tags; a search is only for"):
        kseq.load(run, search=GreedySearch())


def test_an_export_describes_itself(exported, tmp_path):
    path = shutil.copytree(exported, tmp_path / "1")
    content = (path / "assets.extra" / "kseq.json").read_text("utf-8")
    description = json.loads(content)
    assert description["tags"] == [*TAGS]
    assert description["preprocessor"]["max_words"] == 60
    (path / "assets.extra" / "kseq.json").unlink()
    assert load_export(path).tags == [*TAGS]  # they are in the graph


def test_a_temperature_scales_logits(tagger, preprocessor, run):
    """It is a file of the run."""
    warm = Tagger(tagger.model, preprocessor, TAGS, temperature=2.0)
    assert warm.get_config() == {**tagger.get_config(), "temperature": 2.0}
    write_temperature(RunDirectory(run), "last", 2.0)
    cold = np.concatenate(tagger.predictor().probabilities(TEXTS))
    expected = softmax(np.log(cold) / 2, axis=1)
    opened = kseq.load(run)
    RunDirectory(run).calibration.unlink()
    assert opened.served.get_config() == warm.get_config()
    found = np.concatenate(opened.probabilities(TEXTS))
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize(
    "temperature", [0, -1.0, math.nan, math.inf, 101, "1", None, True]
)
def test_a_temperature_is_a_number(tagger, temperature):
    with pytest.raises(ValueError, match=r"temperature must be a number from"):
        Tagger(
            *(tagger.model, tagger.preprocessor, TAGS), temperature=temperature
        )


def test_taggers_answer_together(tagger, preprocessor, run, run_of, tmp_path):
    """Each by its own temperature; also in an export."""
    model = LSTMTagger(
        preprocessor.vocab_size, 3, embedding_dim=4, units=4, num_layers=1
    )
    for weight in model.trainable_variables:
        weight.assign(keras.random.normal(weight.shape))
    warm = Tagger(model, preprocessor, TAGS, temperature=2.0)
    second = run_of(warm)
    write_temperature(RunDirectory(second), "last", 2.0)
    both = kseq.load(run, second)
    expected = [
        np.mean(each, axis=0)
        for each in zip(
            tagger.predictor().probabilities(TEXTS),
            warm.predictor().probabilities(TEXTS),
            strict=True,
        )
    ]
    exported = kseq.load(export(both.served, tmp_path / "saved_models"))
    for predictor in (both, exported):
        for found, mean in zip(
            predictor.probabilities(TEXTS), expected, strict=True
        ):
            np.testing.assert_allclose(found, mean, atol=1e-5)
    other = Tagger(model, preprocessor, ("O", "x", "y"))
    with pytest.raises(UserError, match="they have different tags"):
        kseq.load(run, run_of(other))


def test_one_tag_for_each_class(tagger):
    with pytest.raises(ValueError, match="each of the 3 classes"):
        Tagger(tagger.model, tagger.preprocessor, ("a", "b"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tags": ["a", "b"]}, "does not fit: Expected one tag for each"),
        ({"tags": "O x y"}, "is broken: it has no labels, tags or max_length"),
        ({"tags": [1, 2, 3]}, "is broken"),
        ({"tags": None}, "is broken"),
        ({"preprocessor": {"class": "WordPreprocessor", "max_words": 0}},
         "does not fit: .*max_words=0"),
        ({"preprocessor": {"class": "WordPreprocessor", "max_words": "9"}},
         "does not fit: .*max_words='9'"),
    ],
)  # fmt: skip
def test_a_broken_task_is_one_message(run, tmp_path, changes, message):
    copy = RunDirectory(shutil.copytree(run, tmp_path / "run"))
    task = {**copy.read_task(), **changes}
    copy.task.write_text(json.dumps(task))
    with pytest.raises(UserError, match=message) as caught:
        kseq.load(copy.path)
    assert str(copy.task) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_task_of_another_model(run, classifiers, run_of, tmp_path):
    copy = RunDirectory(shutil.copytree(run, tmp_path / "run"))
    other = run_of(classifiers["flat"])
    shutil.copy(other / "model.json", copy.model)
    last = copy.checkpoints / "last"
    shutil.rmtree(last)
    shutil.copytree(other / "checkpoints" / "last", last)
    with pytest.raises(UserError, match="FlatAttention has no num_tags"):
        kseq.load(copy.path)
