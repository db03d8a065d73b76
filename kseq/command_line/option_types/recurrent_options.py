"""The options of recurrent decoders, and of their encoders."""

import dataclasses
from typing import Literal

from kseq.command_line.option_types.value_types import (
    NonNegativeInt,
    PositiveInt,
    Share,
    SmallInt,
)
from kseq.user_error import UserError


@dataclasses.dataclass(frozen=True, kw_only=True)
class RecurrentDecoderOptions:
    """What a recurrent decoder with attention computes.

    A recipe that inherits them has `seed`. One with a choice of decoders calls
    this one "lstm" in its field `decoder`; the model "hierarchical" attends to
    words and to turns.
    """

    attention: Literal[
        *("none", "dot", "scaled_dot", "general", "concat", "additive")
    ] = "additive"
    order: Literal["luong", "bahdanau"] = "bahdanau"  # cell or attention first
    input_feeding: bool | None = None  # default: only with --order luong
    cell: Literal["lstm", "gru", "rnn"] = "lstm"
    sampling_schedule: Literal[
        "none", "linear", "exponential", "inverse_sigmoid"
    ] = "none"  # growth of the rate of scheduled sampling
    sampling_rate: Share = 0.25  # highest rate of scheduled sampling
    sampling_steps: PositiveInt = 1000  # steps until half of --sampling-rate

    def recurrent_arguments(self) -> dict:
        """The keyword arguments of `LSTMSeq2Seq`, without the attention."""
        feeds = self.input_feeding
        if feeds is None:
            feeds = self.order == "luong" and self.attention != "none"
        arguments = {
            "order": self.order,
            "input_feeding": feeds,
            "cell": {"rnn": "tanh"}.get(self.cell, self.cell),
        }
        if self.sampling_schedule != "none":
            arguments |= {
                "sampling_schedule": self.sampling_schedule,
                "sampling_rate": self.sampling_rate,
                "sampling_steps": self.sampling_steps,
                "sampling_seed": self.seed,
            }
        return arguments

    def check(self):
        attention = f"--attention {self.attention}"
        if self.input_feeding and self.order == "bahdanau":
            raise UserError("--order bahdanau needs --no-input-feeding.")
        if self.input_feeding and self.attention == "none":
            raise UserError(f"{attention} needs --no-input-feeding.")
        of_turns = getattr(self, "model", None) == "hierarchical"
        if of_turns and self.attention not in ("additive", "none"):
            raise UserError(
                f"{attention} needs --model joined or --model single. "
                "Received: --model hierarchical"
            )
        if self.attention == "none" and getattr(self, "coverage", 0.0):
            raise UserError(f"{attention} needs --coverage 0.")
        if self.attention == "none" and getattr(self, "context_gate", False):
            raise UserError(f"{attention} needs --no-context-gate.")
        feeds_back = self.input_feeding is not False or self.order == "bahdanau"
        if self.attention == "location_aware" and not feeds_back:
            raise UserError(
                f"{attention} needs --input-feeding or --order bahdanau."
            )

    def unread(self):
        if getattr(self, "decoder", "lstm") != "lstm":
            fields = dataclasses.fields(RecurrentDecoderOptions)
            names = [field.name for field in fields]
            yield f"--decoder lstm. Received: --decoder {self.decoder}", names
        if self.sampling_schedule == "none":
            yield "--sampling-schedule", ("sampling_rate", "sampling_steps")
        if self.attention == "none":
            yield "attention. Received: --attention none", ("order",)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RecurrentOptions(RecurrentDecoderOptions):
    """What the layers of a recurrent encoder-decoder compute."""

    attention: Literal[
        *("none", "dot", "scaled_dot", "general", "concat", "additive"),
        *("location", "location_aware"),
    ] = "concat"
    order: Literal["luong", "bahdanau"] = "luong"  # cell or attention first
    last_states: NonNegativeInt = 0  # attend to this many last states; 0: all
    local: Literal["none", "monotonic", "predictive"] = "none"  # moving window
    window: PositiveInt = 10  # positions on each side, with --local
    copy: bool = False  # copy pieces of the source (pointer-generator)
    layers: SmallInt = 1  # of the encoder and of the decoder
    bidirectional: bool = True  # encoder, with half of --units each way
    reverse_source: bool = False  # read the source from its end

    def recurrent_arguments(self) -> dict:
        return {
            **super().recurrent_arguments(),
            "num_encoder_layers": self.layers,
            "num_decoder_layers": self.layers,
            "bidirectional": self.bidirectional,
            "reverse_source": self.reverse_source,
            "copy": self.copy,
        }

    def check(self):
        if self.last_states and self.attention in ("none", "location"):
            raise UserError(
                "--last-states needs attention by content. "
                f"Received: --attention {self.attention}"
            )
        is_local = self.local != "none"
        scores = ("dot", "scaled_dot", "general", "concat")
        if is_local and self.attention not in scores:
            raise UserError(
                f"--local {self.local} needs --attention dot, scaled_dot, "
                f"general or concat. Received: --attention {self.attention}"
            )
        if is_local and self.last_states:
            raise UserError(
                f"--local {self.local} needs --last-states 0. "
                f"Received: --last-states {self.last_states}"
            )
        if self.copy and self.attention == "none":
            raise UserError("--copy needs attention. Received: none")
        if self.copy and len(getattr(self, "pieces", ())) > 1:
            raise UserError(
                "--copy needs one vocabulary of source and target: one type "
                f"of --pieces. Received: {' '.join(self.pieces)}"
            )
        if getattr(self, "guided_alignment", 0) and self.attention == "none":
            raise UserError(
                "--guided-alignment needs attention. Received: none"
            )
        if self.reverse_source and self.bidirectional:
            raise UserError("--reverse-source needs --no-bidirectional.")

    def unread(self):
        if self.local == "none":
            yield "--local monotonic or --local predictive", ("window",)
