"""Sizes of a model with which a GPU computes slowly."""

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


def odd_sizes(model):
    """Says which sizes Tensor Cores cannot compute with directly.

    Args:
        model: a `kseq` model.

    Returns:
        list of str, one line; empty if all sizes fit, and where there is no
        GPU or no half precision.
    """
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
