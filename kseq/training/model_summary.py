"""What is printed of a model before it is trained."""

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
    """The sizes of a model and of its vocabulary, in one line.

    On a GPU in half precision, a second line names sizes that make it slow.

    Args:
        model: a `kseq` model.

    Returns:
        str.
    """
    text = f"{type(model).__name__}: {model.count_params():,} parameters"
    for name in ("vocab_size", "source_vocab_size"):
        if size := getattr(model, name, None):
            text += f", a vocabulary of {size:,} pieces"
            break
    return "\n".join([text, *_unaligned_sizes(model)])


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
