"""Transformers of OpenNMT-tf."""

import re
from pathlib import Path

import numpy as np
import tensorflow as tf

from kseq.conversion.converted_model import ConvertedModel
from kseq.conversion.transformer_layers import (
    assign_layers,
    transformer_layers,
)
from kseq.conversion.vocabulary_tokenizers import (
    CONTROL,
    read_file,
    vocabulary_tokenizers,
)
from kseq.conversion.weights import Weights
from kseq.data import TextPreprocessor
from kseq.decoding import BeamSearch
from kseq.files.regular_file import check_regular
from kseq.models import Transformer
from kseq.runs.checkpoint_index import check_index
from kseq.serving import Generator
from kseq.terminal import single_line
from kseq.user_error import UserError

_FIRST = ["<blank>", "<s>", "</s>"]  # of a vocabulary
_HEADS = {64: 2, 512: 8, 1024: 16}  # of TransformerTiny, Base and Big
_EPSILON = 1e-3  # of normalization, since version 2.10
_MAX_LENGTH = 250  # of an answer
_VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"
_EMBEDDINGS = _SOURCE, _TARGET = [
    f"model/examples_inputter/{side}_inputter/embedding"
    for side in ("features", "labels")
]
_OUTPUT = "model/decoder/output_layer"
_LAYERS = {
    "self_attention.query_key_value": [
        f"self_attention/layer/linear_{part}"
        for part in ("queries", "keys", "values")
    ],
    "self_attention.projection": ["self_attention/layer/linear_output"],
    "self_attention_norm": ["self_attention/{}_layer_norm"],
    "cross_attention.query": ["attention/0/layer/linear_queries"],
    "cross_attention.key_value": [
        f"attention/0/layer/linear_{part}" for part in ("keys", "values")
    ],
    "cross_attention.projection": ["attention/0/layer/linear_output"],
    "cross_attention_norm": ["attention/0/{}_layer_norm"],
    "ffn_in": ["ffn/layer/inner"],
    "ffn_out": ["ffn/layer/outer"],
    "ffn_norm": ["ffn/{}_layer_norm"],
}


def read_opennmt_tf(
    folder, vocabularies, models, *, heads=None, source_end=False
):
    """Reads a Transformer that OpenNMT-tf has trained.

    Sizes are those of the weights. `model_description.py`, a program, is not
    run; a number of heads that it names is used. The positions are a table of
    learned ones that starts as the sinusoids of OpenNMT-tf. The ids of kseq are
    PAD, UNK, START and END, then the other tokens in the order of their file.

    Args:
        folder: path of a folder of checkpoints; the last one is read.
        vocabularies: two paths of files with a token in each line, of source
            and target.
        models: two paths of SentencePiece models, of source and target.
        heads: int, or None for those that OpenNMT-tf gives a model of this
            size.
        source_end: bool, whether sources had the token of the end of a sentence
            in training, which OpenNMT-tf leaves out by default.

    Returns:
        `ConvertedModel`.

    Raises:
        UserError: if a file is missing or broken, or the model computes
            something that `kseq.models.Transformer` does not.

    Reference:
        Klein et al. 2020, aclanthology.org/2020.amta-research.9, "The OpenNMT
        Neural Machine Translation Toolkit: 2020 Edition".
    """
    folder = Path(folder)
    path, tensors = _read_checkpoint(folder)
    shapes = {name: tensor.shape for name, tensor in tensors.items()}
    tables = [shapes.get(name, shapes.get(_SOURCE)) for name in _EMBEDDINGS]
    hidden = shapes.get("model/encoder/layers/0/ffn/layer/inner/kernel")
    is_known = all(len(shape or ()) == 2 for shape in (*tables, hidden))
    if not is_known or (dim := tables[0][1]) % 2 or dim < 4:
        raise UserError(f"{path} is not a Transformer of OpenNMT-tf.")
    sizes = [size for size, _ in tables]
    pieces = [_pieces(*each) for each in zip(vocabularies, sizes, strict=True)]
    if _TARGET not in shapes and pieces[0] != pieces[1]:
        raise UserError(
            f"{path} has one embedding: source and target have one vocabulary."
        )
    tokenizers = vocabulary_tokenizers([*map(Path, models)], pieces)
    model = Transformer(
        *sizes,
        num_encoder_layers=_count_layers(shapes, "encoder"),
        num_decoder_layers=_count_layers(shapes, "decoder"),
        model_dim=dim,
        ffn_dim=hidden[1],
        num_heads=_heads(folder, dim, heads),
        dropout=0.1,
        norm="pre" if "model/encoder/layer_norm/gamma" in shapes else "post",
        positions="learned",
        share_embeddings=_TARGET not in shapes,
        tie_output=f"{_OUTPUT}/kernel" not in shapes,
        output_bias=f"{_OUTPUT}/bias" in shapes,
        norm_epsilon=_EPSILON,
        source_end=source_end,
    )
    _assign(model, Weights(path, tensors))
    generator = Generator(
        model,
        TextPreprocessor(tokenizers[0]),
        tokenizers[1],
        BeamSearch(length_penalty=0.0),
        max_length=_MAX_LENGTH,
    )
    return ConvertedModel(generator)


def _read_checkpoint(folder):
    """The path of the last checkpoint, and its tensors by name."""
    state = folder / "checkpoint"
    try:
        if state.exists():
            check_regular(state)
        path = tf.train.latest_checkpoint(folder)
    except Exception as error:  # a broken one raises what it will
        raise UserError(f"{state} is broken: {single_line(error)}") from None
    if path is None or Path(path).parent.resolve() != folder.resolve():
        raise UserError(f"{folder} has no TensorFlow checkpoint.")
    try:
        check_index(path)
        reader = tf.train.load_checkpoint(path)
        return path, {
            name.removesuffix(_VALUE): reader.get_tensor(name)
            for name, dtype in reader.get_variable_to_dtype_map().items()
            if name.startswith("model/")
            and name.endswith(_VALUE)
            and ".OPTIMIZER_SLOT" not in name
            and dtype.is_floating
        }
    except Exception as error:  # a broken one raises what it will
        raise UserError(f"{path} is broken: {single_line(error)}") from None


def _pieces(path, size):
    """The tokens of a vocabulary, in the order of kseq."""
    path = Path(path)
    try:
        text = read_file(path).decode()
    except UnicodeDecodeError:
        raise UserError(f"{path} is not text in UTF-8.") from None
    tokens = [line.rstrip("\r") for line in text.removesuffix("\n").split("\n")]
    if tokens[:3] != _FIRST:
        raise UserError(
            f"{path} is not a vocabulary of OpenNMT-tf: it does not begin with "
            f"{', '.join(_FIRST)}."
        )
    if len(tokens) != size - 1 or len({*tokens}) != len(tokens):
        raise UserError(
            f"{path} has {len({*tokens})} different tokens in {len(tokens)} "
            f"lines; the model has {size - 1}, and one for all others."
        )
    if not any("\u2581" in token for token in tokens):
        raise UserError(
            f"{path} has no token with \u2581, the space of SentencePiece: "
            "only models tokenized by SentencePiece are converted."
        )
    return [*CONTROL, *tokens[3:]]


def _count_layers(shapes, stack):
    start, end = f"model/{stack}/layers/", "/ffn/layer/inner/kernel"
    return sum(name.startswith(start) and name.endswith(end) for name in shapes)


def _heads(folder, dim, given):
    """The number of heads, which does not follow from the weights.

    What `model_description.py` says of it is read as text.
    """
    text = ""
    for each in (folder.parent, folder):  # the parent of averaged checkpoints
        path = each / "model_description.py"
        if path.is_file():
            text = read_file(path).decode(errors="replace")
    pairs = re.findall(r"\b(num_heads|ffn_activation)\s*=\s*([\w.]+)", text)
    named = dict(pairs)
    activation = named.get("ffn_activation", "relu")
    if activation.split(".")[-1] != "relu":
        raise UserError(
            f"{folder}: models with ffn_activation={activation} are not "
            "converted; expected relu."
        )
    heads = str(given or named.get("num_heads") or _HEADS.get(dim))
    if not re.fullmatch("[0-9]{1,99}", heads):
        raise UserError(
            f"{folder} does not contain the number of attention heads: give it "
            "with --heads."
        )
    return int(heads)


def _assign(model, weights):
    """Gives a model the weights of a checkpoint, in the order of its ids."""
    dim = model.model_dim
    source, target = map(
        _order, (model.source_vocab_size, model.target_vocab_size)
    )

    def projection(name, inputs, outputs):
        kernel = weights(f"{name}/kernel", inputs, outputs)
        return kernel, weights(f"{name}/bias", outputs)

    def normalization(name, size):
        return weights(f"{name}/gamma", size), weights(f"{name}/beta", size)

    embeddings = weights(_SOURCE, len(source), dim)
    model.source_embedding.embeddings.assign(embeddings[source])
    if not model.share_embeddings:
        embeddings = weights(_TARGET, len(target), dim)
        model.target_embedding.embeddings.assign(embeddings[target])
    if not model.tie_output:
        kernel = weights(f"{_OUTPUT}/kernel", dim, len(target))
        model.target_embedding.reverse_embeddings.assign(kernel[:, target])
    if model.output_bias:
        bias = weights(f"{_OUTPUT}/bias", len(target))
        model.logits.bias.assign(bias[target])
    table = _sinusoids(model.max_length, dim)
    model.source_positions.embeddings.assign(table)
    model.target_positions.embeddings.assign(table)

    where = "input" if model.norm == "pre" else "output"
    names = {
        path: [part.format(where) for part in parts]
        for path, parts in _LAYERS.items()
    }
    layers = [*transformer_layers(model, "model/{}/layers/{}/", names)]
    if model.norm == "pre":
        layers += [
            (model.encoder_norm, ["model/encoder/layer_norm"]),
            (model.decoder_norm, ["model/decoder/layer_norm"]),
        ]
    assign_layers(layers, projection, normalization)
    weights.refuse_others()


def _order(size):
    """The ids of OpenNMT-tf, of which the last is unknown, in kseq's order."""
    return [0, size - 1, 1, 2, *range(3, size - 1)]


def _sinusoids(length, dim):
    """(length, dim): from position 1, with wavelengths to 10000 * 2 pi."""
    half = dim // 2
    rates = 10000.0 ** (-np.arange(half) / (half - 1))
    angles = np.arange(1, length + 1)[:, None] * rates
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
