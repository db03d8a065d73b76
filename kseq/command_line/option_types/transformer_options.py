"""The options of a Transformer, and sizes that are known to work."""

import dataclasses
from typing import Literal

from kseq.command_line.option_types.value_types import (
    Even,
    MultipleOf,
    NonNegativeInt,
    Positions,
    SmallIntOrZero,
    option,
)
from kseq.user_error import UserError


@dataclasses.dataclass(frozen=True, kw_only=True)
class TransformerOptions:
    """What the blocks of a Transformer compute.

    A recipe that inherits them has `heads`, and `model_dim` or `dim`; a recipe
    with a choice of models calls this one "transformer" in its field `model`.
    """

    norm: Literal["pre", "post", "both"] = "pre"  # before or after a sublayer
    normalization: Literal["layer", "rms"] = "layer"
    activation: Literal["relu", "gelu", "silu", "swiglu"] = "relu"  # of FFNs
    positions: Positions = "sinusoidal"
    kv_heads: SmallIntOrZero = 0  # heads of keys and values; 0: as --heads
    window: NonNegativeInt = 0  # reach of self-attention in positions; 0: all
    share_layers: bool = False  # all layers have the same weights

    def block_arguments(self) -> dict:
        """The keyword arguments of a model that has such blocks."""
        return {
            "norm": self.norm,
            "normalization": self.normalization,
            "activation": self.activation,
            "positions": self.positions,
            "num_kv_heads": self.kv_heads or None,
            "window": self.window or None,
            "share_layers": self.share_layers,
        }

    def check(self):
        if getattr(self, "model", "transformer") != "transformer":
            return
        width = "model_dim" if hasattr(self, "model_dim") else "dim"
        size = getattr(self, width)
        wrong = MultipleOf("heads").check(size, self.heads)
        if wrong := wrong or Even().check(size):
            raise UserError(f"{option(width)}: {wrong}. Received: {size}")
        if wrong := MultipleOf("kv_heads").check(self.heads, self.kv_heads):
            raise UserError(f"--heads: {wrong}. Received: {self.heads}")
        if self.positions == "rotary" and size // self.heads % 2:
            raise UserError(
                "--positions rotary needs heads of an even size: "
                f"{option(width)} / --heads. Received: {size} / {self.heads}"
            )

    def unread(self):
        if getattr(self, "model", "transformer") != "transformer":
            fields = dataclasses.fields(TransformerOptions)
            names = ("heads", *(field.name for field in fields))
            yield f"--model transformer. Received: --model {self.model}", names


# Sizes of Transformers; base and big: Vaswani et al. 2017, table 3.
TRANSFORMER_PRESETS = {
    "tiny": {"layers": 2, "model_dim": 128, "ffn_dim": 512, "heads": 4},
    "small": {"layers": 4, "model_dim": 256, "ffn_dim": 1024, "heads": 4},
    "base": {"layers": 6, "model_dim": 512, "ffn_dim": 2048, "heads": 8},
    "big": {"layers": 6, "model_dim": 1024, "ffn_dim": 4096, "heads": 16},
}
