"""Marian's translators in the layout of Hugging Face's transformers."""

from pathlib import Path

import numpy as np
from keras import ops

from kseq.control_tokens import END, PAD, START, UNK
from kseq.conversion.converted_model import ConvertedModel
from kseq.conversion.safetensors import read_safetensors
from kseq.conversion.torch_weights import read_torch_weights
from kseq.conversion.transformer_layers import (
    assign_layers,
    transformer_layers,
)
from kseq.conversion.vocabulary_tokenizers import (
    CONTROL,
    vocabulary_tokenizers,
)
from kseq.conversion.weights import Weights
from kseq.data import TextPreprocessor
from kseq.decoding import BeamSearch
from kseq.files.json_files import read_json
from kseq.models import Transformer
from kseq.ops import sinusoids
from kseq.serving import Generator
from kseq.user_error import UserError

_NO_LOGIT = -100.0  # the bias of a token whose probability is 0
# Values of config.json that a model of kseq does not compute, unless they are:
ONLY = {
    "scale_embedding": True,
    "normalize_before": False,
    "normalize_embedding": False,
    "add_final_layer_norm": False,
    "tie_word_embeddings": True,
}
_DEFAULTS = {
    "num_beams": 1,
    "length_penalty": 1.0,
    "max_length": 512,
    "max_position_embeddings": 512,
    "dropout": 0.1,
    "attention_dropout": 0.0,
}
_ACTIVATIONS = {"swish": "silu", "silu": "silu", "relu": "relu", "gelu": "gelu"}
_SIZES = (
    *("vocab_size", "decoder_vocab_size"),
    *("d_model", "encoder_layers", "decoder_layers"),
    *("encoder_attention_heads", "encoder_ffn_dim"),
    *("pad_token_id", "eos_token_id", "decoder_start_token_id"),
    *("num_beams", "max_length", "max_position_embeddings"),
)
EMBEDDINGS = (
    "model.shared.weight",
    "model.encoder.embed_tokens.weight",
    "model.decoder.embed_tokens.weight",
    "lm_head.weight",
)
_RATES = ("dropout", "attention_dropout", "length_penalty")
_LAYERS = {
    "self_attention.query_key_value": [
        f"self_attn.{part}_proj" for part in "qkv"
    ],
    "self_attention.projection": ["self_attn.out_proj"],
    "self_attention_norm": ["self_attn_layer_norm"],
    "cross_attention.query": ["encoder_attn.q_proj"],
    "cross_attention.key_value": [f"encoder_attn.{part}_proj" for part in "kv"],
    "cross_attention.projection": ["encoder_attn.out_proj"],
    "cross_attention_norm": ["encoder_attn_layer_norm"],
    "ffn_in": ["fc1"],
    "ffn_out": ["fc2"],
    "ffn_norm": ["final_layer_norm"],
}


def read_marian(folder):
    """Reads a translator of Marian, such as OPUS-MT, without PyTorch.

    The ids of kseq are PAD, UNK, START and END, then the other pieces in the
    order of `vocab.json`. Source and target have two tokenizers, and one
    vocabulary or, with `target_vocab.json`, two. A language that a multilingual
    model is asked for, such as ">>fra<<", is a piece of the source.

    Args:
        folder: path with `config.json`, `vocab.json`, perhaps
            `target_vocab.json`, `source.spm`, `target.spm`, and
            `model.safetensors` or `pytorch_model.bin`.

    Returns:
        `ConvertedModel`.

    Raises:
        UserError: if a file is missing or broken, or the model computes
            something that `kseq.models.Transformer` does not.

    Reference:
        Junczys-Dowmunt et al. 2018, arXiv:1804.00344; Tiedemann and Thottingal
        2020, aclanthology.org/2020.eamt-1.61.
    """
    folder = Path(folder)
    config = _config(folder)
    orders, pieces = zip(*_vocabularies(folder, config), strict=True)
    paths = folder / "source.spm", folder / "target.spm"
    tokenizers = vocabulary_tokenizers(paths, pieces)
    weights = _weights(folder)
    _check_sizes(weights, config)
    model = Transformer(
        *map(len, pieces),
        num_encoder_layers=config["encoder_layers"],
        num_decoder_layers=config["decoder_layers"],
        model_dim=config["d_model"],
        ffn_dim=config["encoder_ffn_dim"],
        num_heads=config["encoder_attention_heads"],
        dropout=config["dropout"],
        attention_dropout=config["attention_dropout"],
        norm="post",
        activation=_ACTIVATIONS[config["activation_function"]],
        share_embeddings=config["share_encoder_decoder_embeddings"],
        output_bias=True,
    )
    _assign(model, weights, orders)
    search = BeamSearch(
        config["num_beams"], config["length_penalty"], penalty_offset=0.0
    )
    generator = Generator(
        model,
        TextPreprocessor(tokenizers[0], config["max_position_embeddings"]),
        tokenizers[1],
        search,
        max_length=config["max_length"],
    )
    return ConvertedModel(generator)


def _config(folder):
    """`config.json` and `generation_config.json`, checked."""
    path = folder / "config.json"
    config = read_json(path)
    if config.get("model_type") != "marian":
        raise UserError(
            f"{path} is of model_type {config.get('model_type')!r}; expected "
            "that of a Marian model in the layout of transformers."
        )
    given = folder / "generation_config.json"
    more = read_json(given) if given.is_file() else {}
    config = _DEFAULTS | config | {k: more[k] for k in _DEFAULTS if k in more}
    # Without a value of their own, they are as in most models.
    for name, value in (
        ("decoder_vocab_size", config.get("vocab_size")),
        ("share_encoder_decoder_embeddings", True),
    ):
        if config.get(name) is None:
            config[name] = value
    for name in _SIZES:
        value = config.get(name)
        if type(value) is not int or value < 0:
            raise UserError(
                f"{path}: expected a size as {name}. Received: {value!r}"
            )
    for name in _RATES:
        if type(config[name]) not in (int, float):
            raise UserError(
                f"{path}: expected a number as {name}. Received: "
                f"{config[name]!r}"
            )
    expected = ONLY | {
        "decoder_attention_heads": config["encoder_attention_heads"],
        "decoder_ffn_dim": config["encoder_ffn_dim"],
    }
    for name, value in expected.items():
        if config.get(name, value) not in (value, None):
            raise UserError(
                f"{path}: models with {name} = {config[name]!r} are not "
                f"converted; expected {value!r}."
            )
    if type(config["share_encoder_decoder_embeddings"]) is not bool:
        raise UserError(
            f"{path}: expected true or false as "
            "share_encoder_decoder_embeddings. Received: "
            f"{config['share_encoder_decoder_embeddings']!r}"
        )
    if config.get("activation_function") not in [*_ACTIVATIONS]:
        raise UserError(
            f"{path}: the activation {config.get('activation_function')!r} is "
            f"none of {', '.join(_ACTIVATIONS)}."
        )
    return config


def _vocabularies(folder, config):
    """What `_vocabulary` returns for source and target."""
    source, target = folder / "vocab.json", folder / "target_vocab.json"
    path = folder / "tokenizer_config.json"
    told = read_json(path) if path.is_file() else {}
    if not told.get("separate_vocabs", target.is_file()):
        target = source
    elif config["share_encoder_decoder_embeddings"]:
        raise UserError(
            f"{folder} has two vocabularies, and one embedding for both."
        )
    sizes = config["vocab_size"], config["decoder_vocab_size"]
    return [
        _vocabulary(path, size, config)
        for path, size in zip((source, target), sizes, strict=True)
    ]


def _vocabulary(path, size, config):
    """The ids of Marian in the order of kseq, and their pieces.

    An id that kseq has and Marian does not is -1.
    """
    ids = read_json(path)
    numbers = [number for number in ids.values() if type(number) is int]
    if len(ids) != size or sorted(numbers) != list(range(size)):
        raise UserError(
            f"{path} does not number the {size} pieces of config.json from 0."
        )
    by_id = {number: piece for piece, number in ids.items()}
    if "<unk>" not in ids:
        raise UserError(f"{path} has no piece <unk>.")
    control = [-1] * 4
    control[UNK] = ids["<unk>"]
    control[END] = config["eos_token_id"]
    control[START] = config["decoder_start_token_id"]
    if config["pad_token_id"] != control[START]:
        control[PAD] = config["pad_token_id"]
    named = {*control[UNK:], config["pad_token_id"]}
    if not named <= by_id.keys() or len({*control}) < len(control):
        raise UserError(f"{path} does not fit the ids of config.json.")
    order = control + [
        number for number in sorted(by_id) if number not in control
    ]
    return order, [*CONTROL, *(by_id[number] for number in order[4:])]


def _weights(folder):
    path = folder / "model.safetensors"
    if path.is_file():
        return Weights(path, read_safetensors(path))
    path = folder / "pytorch_model.bin"
    if path.is_file():
        return Weights(path, read_torch_weights(path))
    raise UserError(
        f"{folder} has neither model.safetensors nor pytorch_model.bin."
    )


def _check_sizes(weights, config):
    """UserError for a model that is larger than its file, before it is made."""
    dim = config["d_model"]
    for stack in ("encoder", "decoder"):
        for number in range(config[f"{stack}_layers"]):
            layer = f"model.{stack}.layers.{number}"
            weights.check(f"{layer}.self_attn.q_proj.weight", dim, dim)
            weights.check(f"{layer}.fc1.weight", config["encoder_ffn_dim"], dim)


def _assign(model, weights, orders):
    """Gives a model the weights of a file, in the order of its own ids."""
    dim = model.model_dim
    shared, source, target, output = EMBEDDINGS
    if model.share_embeddings:
        _embed(model.target_embedding, weights, orders[1], *EMBEDDINGS)
    else:
        weights.get(shared)  # which nothing reads
        _embed(model.source_embedding, weights, orders[0], source)
        _embed(model.target_embedding, weights, orders[1], target, output)
    rows = np.array(orders[1])
    size = max(rows) + 1
    bias = weights.get("final_logits_bias")
    bias = np.zeros(size) if bias is None else bias.reshape(-1)
    if len(bias) != size:
        raise UserError("final_logits_bias does not fit the embedding.")
    model.logits.bias.assign(np.where(rows >= 0, bias[rows], _NO_LOGIT))
    _check_positions(weights, dim)

    def projection(name, inputs, outputs):
        kernel = weights(f"{name}.weight", outputs, inputs)
        return kernel.T, weights(f"{name}.bias", outputs)

    def normalization(name, size):
        return weights(f"{name}.weight", size), weights(f"{name}.bias", size)

    assign_layers(marian_layers(model), projection, normalization)
    weights.refuse_others()


def marian_layers(model):
    """See `transformer_layers`; the names are those of Marian's files."""
    return transformer_layers(model, "model.{}.layers.{}.", _LAYERS)


def _embed(layer, weights, order, *names):
    """Gives an embedding the tensor that has one or more of the names."""
    found = {name: weights.get(name) for name in names}
    found = {name: each for name, each in found.items() if each is not None}
    size, dim = max(order) + 1, layer.output_dim
    if not found:
        raise UserError(f"There is no {' or '.join(names)}.")
    for name, each in found.items():
        if each.shape != (size, dim):
            raise UserError(
                f"{name} has the shape {each.shape}; expected an embedding of "
                f"{size} pieces of size {dim}."
            )
    (name, first), *others = found.items()
    for other, each in others:
        if not np.array_equal(each, first):
            raise UserError(
                f"{other} differs from {name}: config.json says that they are "
                "one embedding."
            )
    rows = np.array(order)
    known = (rows >= 0)[:, None]
    layer.embeddings.assign(np.where(known, first[rows], 0.0))


def _check_positions(weights, dim):
    """UserError unless stored positions are those that kseq computes."""
    for stack in ("encoder", "decoder"):
        stored = weights.get(f"model.{stack}.embed_positions.weight")
        if stored is None:
            continue
        table = sinusoids(ops.arange(len(stored), dtype="float32"), dim)
        if not np.allclose(ops.convert_to_numpy(table), stored, atol=1e-3):
            raise UserError(f"The positions of the {stack} are not sinusoidal.")
