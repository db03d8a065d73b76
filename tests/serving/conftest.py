import itertools

import keras
import pytest
import tensorflow as tf

from kseq.data import DocumentPreprocessor, TextPreprocessor, Tokenizer
from kseq.data.documents.dispatch_reports import dispatch_reports
from kseq.layers import LuongAttention
from kseq.loading import load_export
from kseq.models import (
    DualEncoder,
    FlatAttention,
    HierarchicalAttention,
    LSTMSeq2Seq,
    Transformer,
)
from kseq.serving import (
    Classifier,
    Generator,
    Retriever,
    export,
)
from tests.commands.saved_run import saved_run
from tests.slow import slow

LINES = [
    "the cat sat on the mat and the dog sat on the cat",
    "a dog ate 12 bones, a cat ate 3 fish",
    "Straße über Äpfel",
    "日本語 テスト",
    "good 😀 smile",
]
LABELS = ("fire", "flood", "größer")


@pytest.fixture(scope="session")
def tokenizers():
    """Of source and target, unlike each other."""
    source = Tokenizer.train(LINES, 300, "bpe")
    return source, Tokenizer.train(LINES[::-1], 60, "char")


@pytest.fixture(scope="session")
def generators(tokenizers):
    """Of two kinds, untrained, but with answers that are no near ties."""
    source, target = tokenizers
    sizes = {
        "source_vocab_size": source.vocab_size,
        "target_vocab_size": target.vocab_size,
    }
    models = {
        "transformer": Transformer(
            **sizes,
            num_encoder_layers=1,
            num_decoder_layers=1,
            model_dim=8,
            ffn_dim=16,
            num_heads=2,
            dropout=0.1,
        ),
        "lstm": LSTMSeq2Seq(
            **sizes, embedding_dim=8, units=8, attention=LuongAttention("dot")
        ),
    }
    for model in models.values():
        for i, weight in enumerate(model.trainable_variables):
            values = tf.random.stateless_normal(weight.shape, seed=(0, i))
            weight.assign(0.5 * values)
    return {
        kind: Generator(
            model, TextPreprocessor(source, 32), target, max_length=32
        )
        for kind, model in models.items()
    }


class Lazy(dict):
    """Makes a value when it is first asked for: each takes seconds."""

    def __init__(self, make):
        self.make = make

    def __missing__(self, kind):
        self[kind] = self.make(kind)
        return self[kind]


@pytest.fixture(scope="session")
def exports(generators, tmp_path_factory):
    """The first versions of the generators."""
    directory = tmp_path_factory.mktemp("saved_models")
    return Lazy(lambda kind: export(generators[kind], directory / kind))


@pytest.fixture(scope="session")
def loaded_exports(exports):
    """Their predictors."""
    return Lazy(lambda kind: load_export(exports[kind]))


@pytest.fixture(scope="session")
def classifiers():
    """Of two kinds, untrained, but with answers that are no near ties."""
    documents = dispatch_reports("train", size=50)
    preprocessor = DocumentPreprocessor.train(documents, 400)
    sizes = {"embedding_dim": 6, "units": 4, "attention_units": 3}
    models = {
        "hierarchical": HierarchicalAttention(400, 3, **sizes),
        "flat": FlatAttention(400, 3, ngrams=2, **sizes),
    }
    keras.utils.set_random_seed(1)
    for model in models.values():
        for weight in [*model.trainable_variables, *model.logits.weights]:
            weight.assign(keras.random.normal(weight.shape))
    return {
        kind: Classifier(model, preprocessor, LABELS)
        for kind, model in models.items()
    }


@pytest.fixture(scope="session")
def classifier_export(classifiers, tmp_path_factory):
    """The first version of the flat one, which is traced sooner."""
    directory = tmp_path_factory.mktemp("saved_models")
    return export(classifiers["flat"], directory)


@pytest.fixture(scope="session")
def loaded_classifier(classifier_export):
    return load_export(classifier_export)


@pytest.fixture(scope="session")
def retriever(tokenizers):
    """Untrained, but with answers that are no near ties."""
    source, target = tokenizers
    model = DualEncoder(
        *(source.vocab_size, target.vocab_size), embedding_dim=8, units=6, dim=8
    )
    for i, weight in enumerate(model.trainable_variables):
        weight.assign(tf.random.stateless_normal(weight.shape, seed=(0, i)))
    preprocessor = TextPreprocessor(source, 32)
    words = itertools.permutations(["the", "cat", "dog", "ate", "on"], 2)
    answers = [*LINES, *map(" ".join, words)]
    return Retriever(model, preprocessor, target, answers, max_length=32)


@pytest.fixture(scope="session")
def retriever_export(retriever, tmp_path_factory):
    return export(retriever, tmp_path_factory.mktemp("saved_models"))


@pytest.fixture(scope="session")
def run_of(tmp_path_factory):
    """Makes a run of what is served."""

    return lambda served: saved_run(
        served, tmp_path_factory.mktemp("runs") / "run"
    )


# The export of a transformer answers like its run in tests/commands, too.
@pytest.fixture(params=[slow("transformer"), "lstm"])
def kind(request):
    return request.param


@pytest.fixture
def generator(generators, kind):
    return generators[kind]


@pytest.fixture
def exported(exports, kind):
    return exports[kind]


@pytest.fixture
def loaded_export(loaded_exports, kind):
    return loaded_exports[kind]


@pytest.fixture
def text():
    """Lines of several lengths, with a blank and an over-long one."""
    return tf.constant(["the cat", "", "日本 a dog " * 40, "12 bones", " \t "])
