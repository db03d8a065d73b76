"""Export to the layout of Marian in Hugging Face's transformers."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from sentencepiece import sentencepiece_model_pb2

from kseq.control_tokens import END, PAD, START
from kseq.conversion.marian import EMBEDDINGS, ONLY, marian_layers
from kseq.conversion.safetensors import write_safetensors
from kseq.conversion.vocabulary_tokenizers import CONTROL, LANGUAGE
from kseq.files.new_folder import new_folder
from kseq.serving import Generator
from kseq.serving.check_transformer import check_transformer


def export_marian(generator: Generator, directory: Path) -> Path:
    """Writes a translator as a Marian model of transformers.

    The folder holds what `read_marian` reads, and appears atomically. The ids
    are those of kseq. The penalty of a beam search is length **
    length_penalty, whatever its offset.

    Args:
        generator: `kseq.serving.Generator`.
        directory: `pathlib.Path` of a folder that does not exist.

    Returns:
        `directory`.

    Raises:
        UserError: if transformers' Marian does not compute the model, or the
            folder exists or cannot be written.
        DiskError: if the disk is full.
    """
    check_transformer(
        *(generator, "Marian"),
        norm=("post",),
        normalization=("layer",),
        activation=("relu", "gelu", "silu"),
        num_kv_heads=(None, getattr(generator.model, "num_heads", None)),
        positions=("sinusoidal",),
        tie_output=(True,),
        norm_epsilon=(1e-5,),
        source_end=(True,),
    )
    config = _config(generator)
    vocabularies = [
        _vocabulary(generator.tokenizers[side]) for side in ("source", "target")
    ]
    names = ["vocab.json", "target_vocab.json"]
    is_separate = not generator.model.share_embeddings
    files = dict(zip(names, vocabularies[: 1 + is_separate], strict=False))
    files |= {
        "config.json": config,
        "generation_config.json": _generation_config(generator),
        "tokenizer_config.json": {
            "tokenizer_class": "MarianTokenizer",
            "separate_vocabs": is_separate,
            "model_max_length": config["max_position_embeddings"],
        },
    }
    with new_folder(directory) as hidden:
        for name, content in files.items():
            text = json.dumps(content, ensure_ascii=False, indent=1)
            (hidden / name).write_text(text, "utf-8")
        for side in ("source", "target"):
            model = generator.tokenizers[side].model
            (hidden / f"{side}.spm").write_bytes(model)
        write_safetensors(
            hidden / "model.safetensors", _weights(generator.model)
        )
    return directory


def _config(generator):
    model, preprocessor = generator.model, generator.preprocessor
    stacks = {
        f"{stack}_{name}": value
        for stack in ("encoder", "decoder")
        for name, value in (
            ("attention_heads", model.num_heads),
            ("ffn_dim", model.ffn_dim),
        )
    }
    return {
        "model_type": "marian",
        "architectures": ["MarianMTModel"],
        "is_encoder_decoder": True,
        **ONLY,
        "share_encoder_decoder_embeddings": model.share_embeddings,
        "vocab_size": model.source_vocab_size,
        "decoder_vocab_size": model.target_vocab_size,
        "d_model": model.model_dim,
        "encoder_layers": model.num_encoder_layers,
        "decoder_layers": model.num_decoder_layers,
        **stacks,
        "activation_function": model.activation,
        "dropout": model.dropout,
        "attention_dropout": model.attention_dropout,
        "max_position_embeddings": max(
            preprocessor.max_length, generator.max_length
        ),
        **_IDS,
    }


_IDS = {
    "pad_token_id": PAD,
    "bos_token_id": START,
    "eos_token_id": END,
    "forced_eos_token_id": END,
    "decoder_start_token_id": START,
}


def _generation_config(generator):
    search = generator.search
    return {
        **_IDS,
        "num_beams": getattr(search, "beam_size", 1),
        "length_penalty": float(getattr(search, "length_penalty", 1.0)),
        "max_length": generator.max_length,
        "bad_words_ids": [[PAD], [START]],
    }


def _vocabulary(tokenizer):
    """The ids of pieces; transformers looks languages up without a space."""
    proto = sentencepiece_model_pb2.ModelProto.FromString(tokenizer.model)
    pieces = [each.piece for each in proto.pieces[: tokenizer.vocab_size]]
    pieces[: len(CONTROL)] = CONTROL
    return {
        piece[1:] if LANGUAGE.fullmatch(piece[1:]) else piece: number
        for number, piece in enumerate(pieces)
    }


def _weights(model):
    """dict, name -> array."""
    shared, source, target, _ = EMBEDDINGS
    embeddings = {shared: model.target_embedding}
    if not model.share_embeddings:
        embeddings = {
            source: model.source_embedding,
            target: model.target_embedding,
        }
    tensors: dict[str, Any] = {
        name: np.asarray(layer.embeddings) for name, layer in embeddings.items()
    }
    bias = np.zeros(model.target_vocab_size)
    if model.output_bias:
        bias = np.asarray(model.logits.bias)
    tensors["final_logits_bias"] = bias[None]
    for layer, names in marian_layers(model):
        if hasattr(layer, "gamma"):
            tensors[f"{names[0]}.weight"] = np.asarray(layer.gamma)
            tensors[f"{names[0]}.bias"] = np.asarray(layer.beta)
            continue
        kernels = np.split(np.asarray(layer.kernel).T, len(names))
        biases = np.split(np.asarray(layer.bias), len(names))
        for name, kernel, bias in zip(names, kernels, biases, strict=True):
            tensors[f"{name}.weight"] = kernel
            tensors[f"{name}.bias"] = bias
    return tensors
