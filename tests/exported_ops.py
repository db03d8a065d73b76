"""The operations of all that kseq exports.

    python -m tests.exported_ops

writes them into `kseq/serving/allowed_ops.py`. This exports the model of each
recipe, and what else has operations of its own: about ten minutes.
"""

import functools
import tempfile
from pathlib import Path

import keras
import tensorflow as tf

from kseq import data, decoding, models, serving
from kseq.loading.load_export import read_meta_graph
from kseq.serving import allowed_ops
from kseq.serving.safe_graph import op_names
from tests import recipe_models
from tests.models.seq2seq_systems import CASES
from tests.unpack import unpack

_ARCHIVES = [*Path(__file__).parent.glob("version_*/models.tar.xz")]
_CONSTRAINTS = (
    decoding.ForbiddenTokens([4]),
    decoding.MinLength(2),
    decoding.NoRepeatedNgrams(2),
    decoding.RepetitionPenalty(1.2),
)
_SEARCHES = {
    "beam": decoding.BeamSearch(2),
    "patient beam": decoding.BeamSearch(3, length_penalty=0.5, patience=2.0),
    "groups": decoding.BeamSearch(4, num_groups=2),
    "coverage": decoding.BeamSearch(2, coverage_penalty=0.2),
    "beam with constraints": decoding.BeamSearch(2, constraints=_CONSTRAINTS),
    "greedy": decoding.GreedySearch(),
    "greedy with constraints": decoding.GreedySearch(constraints=_CONSTRAINTS),
    "sampling": decoding.Sampling(0.8, top_k=5, top_p=0.9, seed=1),
    "sampling of all": decoding.Sampling(),
}
# Wirings and attentions that no recipe has.
_OTHERS = (
    *("another transformer", "window of a transformer", "untied output"),
    *("location, bahdanau", "window, bahdanau", "concat, bahdanau"),
    *("scaled_dot, bahdanau", "tanh cells", "gru, two layers, bahdanau"),
    *("rotary positions and grouped queries", "reversed source"),
    "relative positions and shared layers",
)
_PAIR = ("lstm", "transformer")  # of an ensemble
# One of each family of keras.applications, the smallest.
_NETWORKS = (
    *("ConvNeXtTiny", "DenseNet121", "EfficientNetB0", "EfficientNetV2B0"),
    *("InceptionResNetV2", "InceptionV3", "MobileNet", "MobileNetV2"),
    *("MobileNetV3Small", "NASNetMobile", "ResNet50", "ResNet50V2", "VGG16"),
    "Xception",
)


def exported_ops():
    """The names of all operations of all exports, also of earlier versions."""
    found = set()
    for kind in recipe_models.SERVED:
        found |= _of_export(recipe_models.make_served(kind))
    for quantize in ("int8", "bfloat16"):
        found |= _of_export(_wide(), quantize)
    pair = decoding.Ensemble([CASES[name][0]() for name in _PAIR])
    found |= _of_export(_translator(pair))
    for name in _OTHERS:
        found |= _of_export(_translator(CASES[name][0]()))
    for search in _SEARCHES.values():
        served = _translator(CASES["lstm"][0]()).with_search(search)
        found |= _of_export(served)
    found |= _of_export(_translator(CASES["copies"][0](), source_size=14))
    for make in (_speech_greedily, _language_model_in_a_window, _lines):
        found |= _of_export(make())
    for name in _NETWORKS:
        found |= _of_network(name)
    return found.union(*map(_of_archive, _ARCHIVES))


def _of_export(served, quantize=None):
    with tempfile.TemporaryDirectory() as folder:
        path = serving.export(served, folder, quantize=quantize)
        return op_names(read_meta_graph(path))


def _of_network(name):
    """As they are traced within the signatures of an export."""
    network = data.pictures.picture_network.PictureNetwork(name, 96, 96)
    spec = tf.TensorSpec((None, 96, 96, 3), tf.float32)
    return traced_ops(network, spec)


def traced_ops(function, *arguments):
    """The names of the operations of a function's graph."""
    traced = tf.function(function, autograph=False)
    graph = traced.get_concrete_function(*arguments).graph.as_graph_def()
    functions = [part.node_def for part in graph.library.function]
    return {node.op for part in [graph.node, *functions] for node in part}


def _of_archive(archive):
    found = set()
    with tempfile.TemporaryDirectory() as folder:
        unpack(archive, folder)
        for path in Path(folder).rglob("saved_model.pb"):
            found |= op_names(read_meta_graph(path.parent))
    return found


@functools.cache
def _tokenizer(size, model_type="char", verbatim=False):
    lines = ["a b c d e f g", "g f e", "b a d"]
    return data.Tokenizer.train(lines, size, model_type, verbatim)


def _translator(model, source_size=12):
    preprocessor = data.TextPreprocessor(_tokenizer(source_size), 16)
    search = decoding.GreedySearch()
    return serving.Generator(
        model, preprocessor, _tokenizer(14), search, max_length=9
    )


def _speech_greedily():
    return serving.Generator(
        *(CASES["speech"][0](), data.FramePreprocessor(3), _tokenizer(14)),
        decoding.GreedySearch(ctc_weight=0.5),
        max_length=9,
    )


def _language_model_in_a_window():
    tokenizer = _tokenizer(270, "unigram", verbatim=True)
    model = models.TransformerLM(
        tokenizer.vocab_size,
        num_layers=1,
        model_dim=8,
        ffn_dim=8,
        num_heads=2,
        positions="learned",
        window=2,
        max_length=16,
    )
    preprocessor = data.PromptPreprocessor(tokenizer, 8)
    return serving.Generator(model, preprocessor, tokenizer, max_length=9)


def _wide():
    """A model with a matrix that is large enough to be quantized."""
    model = models.BinaryRNN(3, 2, keras.layers.LSTMCell(20))
    return serving.Transducer(model, data.VectorPreprocessor(3))


def _lines():
    """A classifier of documents whose lines are sentences."""
    served = recipe_models.make_served("classify_documents flat")
    preprocessor = data.DocumentPreprocessor(
        served.preprocessor.tokenizer, in_lines=True
    )
    return serving.Classifier(served.model, preprocessor, ("cats", "dogs"))


def module_of(ops):
    """The text of `kseq/serving/allowed_ops.py`."""
    lines = "".join(f'        "{op}",\n' for op in sorted(ops))
    return (
        '"""The operations of what kseq exports, and of no other.\n\n'
        "`python -m tests.exported_ops` writes this file.\n"
        '"""\n\n'
        f"ALLOWED_OPS = frozenset(\n    (\n{lines}    )\n)\n"
    )


if __name__ == "__main__":
    Path(allowed_ops.__file__).write_text(module_of(exported_ops()), "utf-8")
