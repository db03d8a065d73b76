"""The line about a model that is printed before training."""

import math

from kseq.devices import has_gpu

_MULTIPLE = 8  # of 16-bit numbers: the alignment that Tensor Cores need
_SIZES = (
    "vocab_size",
    "source_vocab_size",
    "target_vocab_size",
    "model_dim",
    "ffn_dim",
    "embedding_dim",
    "units",
)


def model_summary(model):
    """The sizes of a model and its vocabulary, cost and dropout, in one line.

    On a GPU in half precision, a second line names sizes that make it slow.
    """
    text = f"{type(model).__name__}: "
    if operations := training_operations(model):
        text += f"{operations / 1e6:,.1f} MFLOPs of training for a token, "
    text += f"{model.count_params():,} parameters"
    names = [name for name in _SIZES if name.endswith("vocab_size")]
    sizes = {getattr(model, name, None): None for name in names}
    if sizes := [f"{size:,}" for size in sizes if size]:
        text += f", a vocabulary of {' and one of '.join(sizes)} pieces"
    if rate := getattr(model, "dropout", 0):
        text += f", dropout {rate:g}"
    return "\n".join([text, *_unaligned_sizes(model)])


def training_operations(model):
    """Floating-point operations of training for a token, of a Transformer.

    Two for each weight of a matrix in the forward pass and four in the
    backward pass, for one token of the source and one of the target where a
    model has both. Attention energies and contexts, which grow with the
    length, are left out. Without Transformer blocks it is 0.

    Reference:
        Kaplan et al. 2020, arXiv:2001.08361, section 2.1.
    """
    blocks = [
        *getattr(model, "encoder_blocks", ()),
        *getattr(model, "decoder_blocks", ()),
        *getattr(model, "blocks", ()),
    ]
    if not blocks:
        return 0
    weights = sum(
        math.prod(weight.shape)
        for block in blocks
        for weight in block.weights
        if weight.name == "kernel"
    )
    outputs = getattr(model, "target_vocab_size", 0)
    return 6 * (weights + outputs * model.model_dim)


def _unaligned_sizes(model):
    """The sizes that Tensor Cores cannot compute with directly."""
    is_half = model.compute_dtype in ("bfloat16", "float16")
    if not (is_half and has_gpu()):
        return []
    sizes = {name: getattr(model, name, None) for name in _SIZES}
    if sizes["model_dim"]:
        sizes["model_dim / num_heads"] = model.model_dim // model.num_heads
    odd = [
        f"{name}={size}"
        for name, size in sizes.items()
        if isinstance(size, int) and size % _MULTIPLE
    ]
    if not odd:
        return []
    return [
        f"A GPU is faster if sizes are multiples of {_MULTIPLE} in half "
        f"precision. Received: {', '.join(odd)}"
    ]
