"""How a recipe trains: where to, from what, by which optimizer and loss."""

import dataclasses
from typing import Literal

from kseq.command_line.option_types.value_types import (
    DType,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    Rate,
    RunPath,
    SampleCount,
    Share,
    SmallIntOrZero,
)
from kseq.files.optional_packages import check_metrics, check_trackers
from kseq.user_error import UserError

# Options without which a model predicts the same twice: scheduled sampling and
# subword dropout do not change between the two predictions.
_RANDOM = ("dropout", "piece_dropout", "sentence_dropout", "masks", "stretch")


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """The options of every recipe, whose `Config` inherits them.

    Defaults that differ, and those that are missing here, are fields of that
    class. The comment beside a field is its help text in all recipes.

    Example:
        >>> from kseq.command_line import option_types as options
        >>> @dataclasses.dataclass(frozen=True)
        ... class Config(options.TrainingOptions):
        ...     run: options.RunPath = "runs/mine"
        ...     steps: options.PositiveInt = 1000
        ...     learning_rate: options.PositiveFloat = 0.001
        ...     units: options.Size = 64
        >>> Config(units=8).evaluate_every
        250
    """

    run: RunPath  # the directory of the run
    overwrite: bool = False  # delete the run and restart
    seed: NonNegativeInt = 1
    deterministic: bool = False  # bit-exact results on GPUs as well
    steps: PositiveInt
    evaluate_every: PositiveInt = 250  # steps between validations
    save_every: PositiveFloat = 30.0  # minutes between saves within an epoch
    accumulation_steps: PositiveInt = 1  # micro-batches, to save memory
    jit_compile: bool = True  # on a GPU, XLA compiles the training step
    learning_rate: PositiveFloat  # peak learning rate
    track: tuple[Literal["wandb", "mlflow"], ...] = ()  # also report to these

    def compile_arguments(self) -> dict:
        """The keyword arguments of `compile`, beside the optimizer."""
        names = (
            *("label_smoothing", "r_drop", "clip_norm", "accumulation_steps"),
            "guided_alignment",  # of a translator
            *("minimum_risk", "risk_samples"),  # of a generator
        )
        arguments = {n: getattr(self, n) for n in names if hasattr(self, n)}
        arguments["jit_compile"] = "auto" if self.jit_compile else False
        return arguments

    def check(self):
        check_trackers(self.track)
        check_metrics(getattr(self, "metrics", ()))
        if not hasattr(self, "vocab_size"):
            return
        from kseq.data.text.tokenizer_training import check_vocab_size

        pieces = getattr(self, "pieces", getattr(self, "tokens", "bpe"))
        for each in (pieces,) if isinstance(pieces, str) else pieces:
            check_vocab_size(self.vocab_size, each)


@dataclasses.dataclass(frozen=True, kw_only=True)
class FineTuningOptions(TrainingOptions):
    """The same, of a recipe that can start from the weights of a run."""

    from_: str = ""  # a run to fine-tune, with its weights and sizes
    new_tokenizer: bool = False  # train a tokenizer on the new data
    freeze: tuple[str, ...] = ()  # layers that are not trained, as in encoder_*
    lora: SmallIntOrZero = 0  # rank of LoRA updates; 0: train all weights

    def check(self):
        if self.new_tokenizer and not self.from_:
            raise UserError(
                "--new-tokenizer needs --from: without --from, a run always "
                "trains its own tokenizer."
            )
        if self.lora and not self.from_:
            raise UserError("--lora needs --from: it fine-tunes a run.")
        if self.lora and self.new_tokenizer:
            raise UserError(
                "--lora trains no embeddings: omit it, or --new-tokenizer."
            )
        if self.lora and getattr(self, "pretraining_steps", 0):
            raise UserError(
                "--lora needs --pretraining-steps 0: pretraining changes whole "
                "matrices."
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class PairOptions(FineTuningOptions):
    """The same, of a recipe whose model is trained on pairs.

    A recipe that inherits them has `batch_tokens` and `max_length`.
    """

    def batch_arguments(self) -> dict:
        """The keyword arguments of `training_batches`, beside the pairs."""
        names = ("batch_tokens", "max_length", "seed")
        return {name: getattr(self, name) for name in names}


@dataclasses.dataclass(frozen=True, kw_only=True)
class WordVectorOptions:
    """Where the embedding of a new model starts.

    A recipe that inherits them has `from_`.
    """

    vectors: str = ""  # file of word vectors (GloVe, fastText) to start from

    def check(self):
        if self.vectors and self.from_:
            raise UserError(
                "The run of --from has embeddings already: omit --vectors."
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class OptimizerOptions:
    """How weights are updated, how exactly, and when training ends early.

    A recipe that inherits them has `save_every`, and `learning_rate` and
    `steps`: see `kseq.training.build_optimizer`.
    """

    optimizer: Literal["adam", "lion", "adafactor"] = "adam"
    schedule: Literal["inverse_sqrt", "cosine", "constant", "range_test"] = (
        "inverse_sqrt"
    )
    warmup_steps: PositiveInt = 200  # steps to the peak of the learning rate
    weight_decay: Rate = 0.0  # decoupled, times the learning rate
    ema: Rate = 0.995  # momentum of the moving averages of the weights; 0: none
    dtype: DType = "auto"  # auto: mixed_bfloat16 if the machine supports it
    patience: NonNegativeInt = 0  # validations without improvement; 0: no limit

    def checkpoint_arguments(self) -> dict:
        """The keyword arguments of `Checkpoints`, beside what it monitors."""
        return {"patience": self.patience, "save_every": self.save_every}

    def unread(self):
        if self.schedule == "range_test":
            yield "a --schedule other than range_test", ("warmup_steps",)


@dataclasses.dataclass(frozen=True, kw_only=True)
class LossOptions(OptimizerOptions):
    """The same, and what is minimized where answers are classes or tokens."""

    label_smoothing: Rate = 0.1
    r_drop: NonNegativeFloat = 0.0  # weight of R-Drop; steps take twice as long
    clip_norm: PositiveFloat = 1.0

    def unread(self):
        """See `refuse_unread`. R-Drop compares two random predictions."""
        if all(getattr(self, n, 0) == 0 for n in _RANDOM):
            yield "--dropout above 0", ("r_drop",)


@dataclasses.dataclass(frozen=True, kw_only=True)
class GenerationLossOptions(LossOptions):
    """The same, and the risk of answers that the model samples."""

    minimum_risk: Share = 0.0  # weight of the risk of sampled answers
    risk_samples: SampleCount = 5  # answers for each example, with it

    def unread(self):
        if not self.minimum_risk:
            yield "--minimum-risk above 0", ("risk_samples",)
