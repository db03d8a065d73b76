"""Marian's translators in the layout of Hugging Face's transformers."""

import json
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
from keras import ops
from sentencepiece import sentencepiece_model_pb2

from kseq.control_tokens import END, PAD, START, UNK
from kseq.conversion.safetensors import read_safetensors
from kseq.conversion.torch_weights import read_torch_weights
from kseq.data import TextPreprocessor, Tokenizer
from kseq.data.text.tokenizer import NOT_IN_VOCABULARY
from kseq.decoding import BeamSearch
from kseq.models import Transformer
from kseq.ops import sinusoids
from kseq.serving import Generator
from kseq.user_error import UserError

LANGUAGE = re.compile(">>.+<<")
_NO_LOGIT = -100.0  # the bias of a token whose probability is 0
CONTROL = ("<pad>", "<unk>", "<s>", "</s>")  # in the order of kseq's ids
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


class MarianModel(NamedTuple):
    """What is read of a folder.

    Args:
        generator: `kseq.serving.Generator`.
        options: dict, the options of `translate_transformer` that make the
            same model.
    """

    generator: Generator
    options: dict


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
        `MarianModel`.

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
    tokenizers = [
        _tokenizer(folder / f"{side}.spm", each)
        for side, each in zip(("source", "target"), pieces, strict=True)
    ]
    if tokenizers[0].model == tokenizers[1].model:
        tokenizers = tokenizers[:1] * 2
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
    _assign(model, _Weights(folder), orders)
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
    return MarianModel(generator, _options(model, search))


def _options(model, search):
    return {
        "encoder_layers": model.num_encoder_layers,
        "decoder_layers": model.num_decoder_layers,
        "layers": model.num_decoder_layers,
        "model_dim": model.model_dim,
        "ffn_dim": model.ffn_dim,
        "heads": model.num_heads,
        "dropout": model.dropout,
        "norm": model.norm,
        "activation": model.activation,
        "output_bias": True,
        "beam_size": search.beam_size,
    }


def _read(path):
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from None


def _json(path):
    try:
        found = json.loads(_read(path))
    except ValueError as error:
        raise UserError(f"{path} is broken: {error}") from None
    if not isinstance(found, dict):
        raise UserError(f"{path} is broken: expected an object.")
    return found


def _config(folder):
    """`config.json` and `generation_config.json`, checked."""
    path = folder / "config.json"
    config = _json(path)
    if config.get("model_type") != "marian":
        raise UserError(
            f"{path} is of model_type {config.get('model_type')!r}; expected "
            "that of a Marian model in the layout of transformers."
        )
    given = folder / "generation_config.json"
    more = _json(given) if given.is_file() else {}
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
    if config.get("activation_function") not in _ACTIVATIONS:
        raise UserError(
            f"{path}: the activation {config.get('activation_function')!r} is "
            f"none of {', '.join(_ACTIVATIONS)}."
        )
    return config


def _vocabularies(folder, config):
    """What `_vocabulary` returns for source and target."""
    source, target = folder / "vocab.json", folder / "target_vocab.json"
    path = folder / "tokenizer_config.json"
    told = _json(path) if path.is_file() else {}
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
    ids = _json(path)
    by_id = {number: piece for piece, number in ids.items()}
    if sorted(by_id) != list(range(size)) or len(by_id) != len(ids):
        raise UserError(
            f"{path} does not number the {size} pieces of config.json from 0."
        )
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


def _tokenizer(path, pieces):
    """A SentencePiece model with the ids of a vocabulary.

    Its segmentation stays as it is: pieces that are not in the vocabulary
    follow it, and become UNK.
    """
    kinds = sentencepiece_model_pb2.ModelProto.SentencePiece
    try:
        proto = sentencepiece_model_pb2.ModelProto.FromString(_read(path))
    except Exception:  # DecodeError is a class of each implementation
        raise UserError(f"{path} is no SentencePiece model.") from None
    control = (kinds.CONTROL, kinds.UNKNOWN)
    own = {
        each.piece: each for each in proto.pieces if each.type not in control
    }
    if not own:
        raise UserError(f"{path} is no SentencePiece model.")
    del proto.pieces[:]
    for piece, kind in zip(
        CONTROL,
        (kinds.CONTROL, kinds.UNKNOWN, kinds.CONTROL, kinds.CONTROL),
        strict=True,
    ):
        proto.pieces.add(piece=piece, score=0.0, type=kind)
    seen = {*CONTROL, ""}
    for number, piece in enumerate(pieces[4:], 4):
        if LANGUAGE.fullmatch(piece):
            # It stands before the text, where SentencePiece adds a space.
            piece, kind, score = f"\u2581{piece}", kinds.USER_DEFINED, 0.0
        elif piece in own:
            kind, score = own[piece].type, own.pop(piece).score
        else:
            kind, score = kinds.UNUSED, 0.0
        if piece in seen:
            piece, kind = f"{piece}#{number}", kinds.UNUSED
        seen.add(piece)
        proto.pieces.add(piece=piece, score=score, type=kind)
    more = [each for piece, each in own.items() if piece not in seen]
    if more:
        name = NOT_IN_VOCABULARY
        proto.pieces.add(piece=name, score=0.0, type=kinds.CONTROL)
        proto.pieces.extend(more)
    proto.trainer_spec.vocab_size = len(proto.pieces)
    for name, number in (
        ("pad_id", PAD),
        ("unk_id", UNK),
        ("bos_id", START),
        ("eos_id", END),
    ):
        setattr(proto.trainer_spec, name, number)
    try:
        return Tokenizer(proto.SerializeToString())
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


class _Weights:
    """The tensors of a folder, by name; each is asked for once."""

    def __init__(self, folder):
        path = folder / "model.safetensors"
        if path.is_file():
            self._tensors = read_safetensors(path)
        else:
            path = folder / "pytorch_model.bin"
            if not path.is_file():
                raise UserError(
                    f"{folder} has neither model.safetensors nor "
                    "pytorch_model.bin."
                )
            self._tensors = read_torch_weights(path)
        self._path = path

    def get(self, name):
        """(...) float32, or None if there is no such tensor."""
        found = self._tensors.pop(name, None)
        return None if found is None else np.asarray(found, "float32")

    def __call__(self, name, *shape):
        found = self.get(name)
        if found is None:
            raise UserError(f"{self._path} has no {name}.")
        if found.shape != shape:
            raise UserError(
                f"{self._path}: {name} has the shape {found.shape}; "
                f"config.json says {shape}."
            )
        return found

    def refuse_others(self):
        """UserError for tensors that nobody has asked for."""
        if self._tensors:
            raise UserError(
                f"{self._path} has tensors that a Marian model does not have: "
                f"{', '.join(sorted(self._tensors)[:3])}."
            )


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

    for layer, names in marian_layers(model):
        if hasattr(layer, "gamma"):
            layer.gamma.assign(weights(f"{names[0]}.weight", dim))
            layer.beta.assign(weights(f"{names[0]}.bias", dim))
            continue
        inputs, outputs = layer.kernel.shape
        size = outputs // len(names)
        kernels = [weights(f"{name}.weight", size, inputs) for name in names]
        biases = [weights(f"{name}.bias", size) for name in names]
        layer.kernel.assign(np.concatenate(kernels).T)
        layer.bias.assign(np.concatenate(biases))
    weights.refuse_others()


def marian_layers(model):
    """The names that layers of a model have in a file of weights.

    Args:
        model: `kseq.models.Transformer`.

    Yields:
        (layer, names), of a normalization, or of a projection that is one or
        several in the file.
    """

    def attention(layer, name, *, to_memory=False):
        query, key, value, out = (
            f"{name}.{part}_proj" for part in ("q", "k", "v", "out")
        )
        if to_memory:
            yield layer.query, [query]
            yield layer.key_value, [key, value]
        else:
            yield layer.query_key_value, [query, key, value]
        yield layer.projection, [out]

    def feed_forward(block, name):
        yield block.ffn_in, [f"{name}.fc1"]
        yield block.ffn_out, [f"{name}.fc2"]
        yield block.ffn_norm, [f"{name}.final_layer_norm"]

    for number, block in enumerate(model.encoder_blocks):
        name = f"model.encoder.layers.{number}"
        yield from attention(block.attention, f"{name}.self_attn")
        yield block.attention_norm, [f"{name}.self_attn_layer_norm"]
        yield from feed_forward(block, name)
    for number, block in enumerate(model.decoder_blocks):
        name = f"model.decoder.layers.{number}"
        own, other = f"{name}.self_attn", f"{name}.encoder_attn"
        yield from attention(block.self_attention, own)
        yield block.self_attention_norm, [f"{own}_layer_norm"]
        yield from attention(block.cross_attention, other, to_memory=True)
        yield block.cross_attention_norm, [f"{other}_layer_norm"]
        yield from feed_forward(block, name)


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
            raise UserError(f"The positions of the {stack} are no sinusoids.")
