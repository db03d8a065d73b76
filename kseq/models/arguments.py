"""The arguments of models: checked, kept as attributes, and given back."""

from kseq.layers.layer_config import arguments_of
from kseq.user_error import ArgumentError, check_integers, check_number


def set_sizes(model, **sizes):
    """Sets attributes; ArgumentError for one that is no positive integer."""
    check_integers(**sizes)
    for name, size in sizes.items():
        setattr(model, name, int(size))


def set_rates(model, **rates):
    """Sets attributes; ArgumentError for one that is not from 0 to 1."""
    for name, rate in rates.items():
        check_number(name, rate, 0, 1, "from 0 to 1")
        setattr(model, name, float(rate))


# Relative positions up to this distance, as in Shaw et al. 2018, section 4.1.
_MAX_RELATIVE_POSITION = 16


def set_block_arguments(
    model, policy, attention_dropout=0.0, *, positions, **choices
):
    """Sets the attributes of a Transformer that all of its blocks read.

    Args:
        model: has `model_dim`, `num_heads`, `ffn_dim` and `dropout`.
        policy: dtype policy.
        attention_dropout: float.
        positions: str, which becomes an attribute, like the others.
        **choices: `norm`, `normalization`, `activation`, `window`,
            `num_kv_heads`, `share_layers` and perhaps `norm_epsilon`.

    Returns:
        The keyword arguments of a block.

    Raises:
        ArgumentError: if heads do not divide the features evenly.
    """
    if model.model_dim % model.num_heads:
        raise ArgumentError(
            "model_dim must be a multiple of num_heads. Received: "
            f"model_dim={model.model_dim}, num_heads={model.num_heads}"
        )
    for name, value in {"positions": positions, **choices}.items():
        setattr(model, name, value)
    farthest = _MAX_RELATIVE_POSITION if positions == "relative" else None
    return {
        "num_heads": model.num_heads,
        "key_dim": model.model_dim // model.num_heads,
        "ffn_dim": model.ffn_dim,
        "dropout": model.dropout,
        "attention_dropout": attention_dropout,
        "norm": model.norm,
        "normalization": model.normalization,
        "activation": model.activation,
        "window": model.window,
        "rotary": positions == "rotary",
        "max_relative_position": farthest,
        "num_kv_heads": model.num_kv_heads,
        "norm_epsilon": getattr(model, "norm_epsilon", 1e-5),
        "dtype": policy,
    }


def stack_of_blocks(block, count, name, share_layers, **arguments):
    """Creates `count` blocks of a class, `name_0` and so on; or one, repeated.

    Reference:
        Sharing: Dehghani et al. 2019, arXiv:1807.03819; Lan et al. 2020,
        arXiv:1909.11942.
    """
    if share_layers:
        return [block(name=f"{name}_0", **arguments)] * count
    return [block(name=f"{name}_{i}", **arguments) for i in range(count)]


# Arguments that are left out of a config unless they are used, so that it is
# the same as that of a run which did not know them.
_LATER = {
    "source_layer": None,
    "source_dim": None,
    "coverage": 0.0,
    "ctc": 0.0,
    "normalization": "layer",
    "activation": "relu",
    "num_kv_heads": None,
    "share_layers": False,
    "output_bias": False,
    "norm_epsilon": 1e-5,
    "source_end": True,
    "reverse_source": False,
    "context_gate": False,
    "copy": False,
    "sampling_schedule": None,
    "sampling_rate": 0.25,
    "sampling_steps": 1000,
    "sampling_seed": 0,
}


def config_of(model, model_class, *layers, later_rates=()):
    """The config of a model whose arguments are attributes of the same name.

    Args:
        model: a `keras.Model`.
        model_class: its class, or the one above it that calls this function.
        *layers: names of the arguments that are layers.
        later_rates: names of rates that this model, unlike others, got after
            there were runs of it; they are left out if they are 0.

    Returns:
        A dict of the named arguments of the `__init__` of `model_class`.
    """
    config = arguments_of(model, model_class, *layers)
    later = {**_LATER, **dict.fromkeys(later_rates, 0.0)}
    for name, default in later.items():
        if name in config and config[name] == default:
            del config[name]
    if not model.trainable:
        config["trainable"] = False
    return {**config, "dtype": model.dtype_policy.name}
