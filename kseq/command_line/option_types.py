"""The options that recipes share, and types that say which values are valid.

A field `steps: PositiveInt = 2250` refuses 0, -1 and 10**30 with a message
that names the option. The checks import nothing, so that a wrong value is
refused before TensorFlow is imported.
"""

import dataclasses
import math
import numbers
from pathlib import Path
from types import UnionType
from typing import (
    Annotated,
    Literal,
    NamedTuple,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from kseq.data.files.prepared_folder import PreparedFolder, prepared_folder
from kseq.data.files.url_files import is_url
from kseq.user_error import BELOW_ONE, UserError

_LARGEST = 2**31 - 1  # int32, as in most of TensorFlow


class Limits(NamedTuple):
    """The smallest and the largest number that are valid."""

    least: float
    most: float
    expected: str  # in words

    def check(self, value):
        """Returns what is wrong with a value, or None."""
        is_number = isinstance(value, numbers.Real)
        if is_number and self.least <= value <= self.most:  # nan is not
            return None
        return f"expected {self.expected}"


class _Even:
    def check(self, value):
        return "expected an even number" if value % 2 else None


class MultipleOf(NamedTuple):
    """A multiple of another option, which is a positive integer."""

    other: str

    def check(self, value, divisor):
        """Returns what is wrong with a value, or None."""
        if not isinstance(divisor, int) or divisor < 1:
            return None  # its own rule refuses it
        if value % divisor:
            return f"expected a multiple of {option(self.other)} {divisor}"
        return None


class _NewDirectory(NamedTuple):
    """A directory that exists or can be created; or a file in one."""

    or_file: bool = False

    def check(self, value):
        path = Path(value)
        if is_url(value):
            return "expected a local directory: nothing is written to URLs"
        if not value or "\0" in value or path.name in ("", ".."):
            return "expected the name of a directory, as in runs/NAME"
        try:
            for part in [path, *path.parents][self.or_file :]:
                if part.exists() and not part.is_dir():
                    return f"{part} is a file, and must be a directory"
        except OSError as error:
            return error.strerror
        return None


_SMALLEST_FLOAT = math.ulp(0.0)
_HUGE = 1e300

PositiveInt = Annotated[
    int, Limits(1, _LARGEST, f"an integer of at least 1 and at most {_LARGEST}")
]
NonNegativeInt = Annotated[
    int, Limits(0, _LARGEST, f"an integer of at least 0 and at most {_LARGEST}")
]
# Of a layer. A typo would exhaust memory only after minutes.
Size = Annotated[int, Limits(1, 65_536, "an integer from 1 to 65536")]
EvenSize = Annotated[Size, _Even()]
# SentencePiece would try larger ones for minutes.
VocabSize = Annotated[int, Limits(1, 1_000_000, "an integer from 1 to 1000000")]
# Of layers, heads, answers in a beam, checkpoints.
SmallInt = Annotated[int, Limits(1, 1000, "an integer from 1 to 1000")]
# The same, or 0 for what another option says.
SmallIntOrZero = Annotated[int, Limits(0, 1000, "an integer from 0 to 1000")]
# Each piece more is another n-gram at every place of a document.
Ngrams = Annotated[int, Limits(0, 10, "an integer from 0 to 10")]
Port = Annotated[int, Limits(0, 65_535, "an integer from 0 to 65535")]
PositiveFloat = Annotated[
    float, Limits(_SMALLEST_FLOAT, _HUGE, "a positive number")
]
NonNegativeFloat = Annotated[
    float, Limits(0.0, _HUGE, "a number of at least 0")
]
# Of dropout, label smoothing and moving averages.
Rate = Annotated[float, Limits(0.0, BELOW_ONE, "a number from 0 to below 1")]
# Of normalization: without it a variance of 0 gives nan.
Epsilon = Annotated[float, Limits(1e-12, 1.0, "a number from 1e-12 to 1")]
Share = Annotated[float, Limits(0.0, 1.0, "a number from 0 to 1")]
RunPath = Annotated[str, _NewDirectory()]
# Of an export; what may not exist is refused when it is written.
NewPath = Annotated[str, _NewDirectory(or_file=True)]
# One type for a vocabulary of both sides, or those of source and target.
Pieces = Literal["bpe", "unigram", "char", "word"]
# The first one chooses the best weights.
Metric = Literal[
    *("bleu", "chrf", "exact_match", "cer", "wer", "ter"),
    *("rouge_1", "rouge_2", "rouge_l", "distinct_1", "distinct_2"),
    *("rouge_1_stem", "rouge_2_stem", "rouge_l_stem"),
    # With other tokenizers than 13a; with words beside characters.
    *("bleu_char", "bleu_intl", "bleu_zh", "bleu_ja", "bleu_ko"),
    *("chrf_plus_plus", "comet"),
]
Positions = Literal["sinusoidal", "learned", "rotary", "relative", "none"]
# Of them auto is replaced when a run starts: see `kseq.runs.RunDirectory`.
DType = Literal["auto", "float32", "mixed_bfloat16", "mixed_float16"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """The options of every recipe, whose `Config` inherits them.

    Defaults that differ, and those that are missing here, are fields of that
    class. The comment beside a field is its help text in all recipes.

    Example:
        >>> @dataclasses.dataclass(frozen=True)
        ... class Config(TrainingOptions):
        ...     run: RunPath = "runs/mine"
        ...     steps: PositiveInt = 1000
        ...     learning_rate: PositiveFloat = 0.001
        ...     units: Size = 64
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
    learning_rate: PositiveFloat  # peak learning rate
    track: tuple[Literal["wandb", "mlflow"], ...] = ()  # besides TensorBoard


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
                "--new-tokenizer needs --from: a run that starts from no other "
                "always trains its tokenizer."
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
            raise UserError("--from has embeddings already: omit --vectors.")


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
    """The same, and what is minimized where answers are classes or tokens.

    A recipe that inherits them has `accumulation_steps`.
    """

    label_smoothing: Rate = 0.1
    r_drop: NonNegativeFloat = 0.0  # weight of R-Drop; steps take twice as long
    clip_norm: PositiveFloat = 1.0

    def compile_arguments(self) -> dict:
        """The keyword arguments of `compile`, beside the optimizer."""
        names = (
            *("label_smoothing", "r_drop", "clip_norm", "accumulation_steps"),
            "guided_alignment",  # of a translator
        )
        return {n: getattr(self, n) for n in names if hasattr(self, n)}

    def unread(self):
        """See `refuse_unread`. R-Drop compares two random predictions."""
        samples = getattr(self, "sampling_schedule", "none") != "none"
        if not (samples or any(getattr(self, n, 0) != 0 for n in _RANDOM)):
            yield "--dropout above 0", ("r_drop",)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TranslationOptions:
    """The pairs of sentences of a translator, and how they are read.

    A recipe that inherits them has `seed`.
    """

    train: tuple[str, ...] | None = None  # files or prepared folder; else dates
    validation: tuple[str, ...] | None = None  # default: held out of --train
    columns: tuple[str, ...] = ()  # names of source, target (and alignment)
    weights: tuple[float, ...] = ()  # how often each corpus is drawn
    pieces: tuple[Pieces, ...] = ("bpe",)  # two types: one for each side
    vocab_size: VocabSize = 8000  # of source and target together
    max_length: PositiveInt = 100  # tokens; longer pairs are skipped
    batch_tokens: PositiveInt = 4096
    dropout: Rate | None = None  # 0.3, or 0.1 for over 100,000 pairs
    piece_dropout: Rate = 0.0  # rate at which whole pieces are dropped
    subword_dropout: Rate = 0.0  # rate of random splits, on both sides
    guided_alignment: NonNegativeFloat = 0.0  # weight of the alignment loss
    pretraining_steps: NonNegativeInt = 0  # denoising steps first; 0: none
    beam_size: SmallInt = 5
    metrics: tuple[Metric, ...] = ("bleu", "chrf", "exact_match")

    def batch_arguments(self) -> dict:
        """The keyword arguments of `training_batches`, beside the pairs."""
        names = ("batch_tokens", "max_length", "seed", "subword_dropout")
        return {
            **{name: getattr(self, name) for name in names},
            "with_alignment": self.guided_alignment > 0,
        }

    def check(self):
        if self.subword_dropout and {*self.pieces} - {"bpe", "unigram"}:
            raise UserError(
                "--subword-dropout needs --pieces bpe or unigram. "
                f"Received: --pieces {' '.join(self.pieces)}"
            )
        if self.subword_dropout and self.guided_alignment:
            raise UserError("--guided-alignment needs --subword-dropout 0.")
        has_alignment, guided = len(self.columns) > 2, self.guided_alignment > 0
        if self.columns and has_alignment != guided:
            raise UserError(
                "--columns SOURCE TARGET ALIGNMENT and --guided-alignment 0.1, "
                "or another weight, need each other. Received: --columns "
                f"{' '.join(self.columns)} --guided-alignment "
                f"{self.guided_alignment:g}"
            )
        if guided and not has_alignment and not _have_alignments(self.train):
            raise UserError(
                "--guided-alignment needs the alignments of words: --columns "
                "SOURCE TARGET ALIGNMENT, also where a folder is prepared."
            )


def _have_alignments(train):
    """Whether prepared pairs have alignments; those at a URL may have them."""
    if folder := prepared_folder(train):
        with PreparedFolder(folder).opened("pairs") as record:
            return "alignment" in record["arrays"]
    return any(map(is_url, train or ()))


@dataclasses.dataclass(frozen=True, kw_only=True)
class DialogueOptions:
    """The dialogues of a recipe, and how much of them is read."""

    train: str | None = None  # file or prepared folder; default: small talk
    validation: str | None = None  # default: held out of --train
    max_turns: PositiveInt = 5  # last turns that are read
    max_pieces: PositiveInt = 60  # pieces per turn; longer turns are cut
    max_length: PositiveInt = 320  # pieces per side; longer ones are skipped
    vocab_size: VocabSize = 8000


@dataclasses.dataclass(frozen=True, kw_only=True)
class PictureOptions:
    """The pictures of a recipe, their captions, and their features."""

    train: str | None = None  # table or prepared folder; default: scenes
    validation: str | None = None  # default: held out of --train, by picture
    columns: tuple[str, ...] = ()  # names or numbers of picture and caption
    features: str = ""  # .npz file with the features of the pictures
    images: str = ""  # folder of the pictures, to compute features
    network: str = "EfficientNetB0"  # of keras.applications, for features
    network_weights: str = "imagenet"  # downloaded once, or a file
    plain: bool = False  # captions in lower case, without punctuation

    def unread(self):
        if self.features:
            names = ("network", "network_weights")
            yield "pictures instead of --features", names


@dataclasses.dataclass(frozen=True, kw_only=True)
class SpeechOptions:
    """The recordings of a recipe, and what an encoder makes of their frames."""

    train: str | None = None  # table or prepared folder; default: Morse code
    validation: str | None = None  # default: held out of --train
    columns: tuple[str, ...] = ()  # names or numbers of file and transcript
    audio: str = ""  # folder of the recordings; default: that of each table
    resample: NonNegativeInt = 0  # new sample rate; 0: that of the recordings
    features: str = ""  # .npz file with ready features, instead of recordings
    max_seconds: PositiveFloat = 30.0  # longer ones are skipped
    num_mels: SmallInt = 40  # features of a frame of 10 ms
    pyramid_layers: SmallInt = 3  # later ones halve the time steps
    stretch: Rate = 0.1  # of time, by up to this much more or less
    masks: NonNegativeInt = 1  # random masks of time and of features
    dtype: DType = "float32"  # auto: mixed_bfloat16 if the machine supports it

    def speech_arguments(self) -> dict:
        """The keyword arguments of `prepare_speech`."""
        names = ("audio", "features", "num_mels", "max_seconds", "resample")
        return {name: getattr(self, name) for name in names}

    def augmentation_arguments(self) -> dict:
        """The keyword arguments of `SpecAugment`."""
        return {
            "time_masks": self.masks,
            "feature_masks": self.masks,
            "stretch": self.stretch,
        }

    def unread(self):
        if self.features:
            names = ("audio", "resample", "num_mels")
            yield "recordings instead of --features", names


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
    window: NonNegativeInt = 0  # positions each way in self-attention; 0: all
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
        if wrong := wrong or _Even().check(size):
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
    last_states: NonNegativeInt = 0  # of the source to attend to; 0: all
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


def check_options(config):
    """Checks a recipe's config.

    A class of options whose values may not fit each other has a method
    `check`, which raises the error.

    Args:
        config: a dataclass instance, with fields of the types of this module
            or of any others, which are not checked.

    Raises:
        UserError: that names the first wrong option.

    Example:
        >>> import dataclasses
        >>> @dataclasses.dataclass
        ... class Config:
        ...     steps: PositiveInt = 100
        >>> check_options(Config(steps=0))
        Traceback (most recent call last):
            ...
        kseq.user_error.UserError: --steps: expected an integer of at least 1 \
and at most 2147483647. Received: 0
    """
    hints = get_type_hints(type(config), include_extras=True)
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        hint = without_none(hints[field.name])
        if hint != hints[field.name] and value is None:
            continue
        choices = get_args(hint)
        if get_origin(hint) is Literal and value not in choices:
            raise UserError(
                f"{option(field.name)}: expected one of "
                f"{', '.join(map(str, choices))}. Received: {value!r}"
            )
        kind = getattr(hint, "__origin__", hint)
        if kind in _WHOLE and type(value) is not kind:
            raise UserError(
                f"{option(field.name)}: expected {_WHOLE[kind]}. "
                f"Received: {value!r}"
            )
        for rule in getattr(hint, "__metadata__", ()):
            if not isinstance(rule, _RULES):
                continue
            others = ()
            if isinstance(rule, MultipleOf):
                others = (getattr(config, rule.other),)
            if wrong := rule.check(value, *others):
                raise UserError(
                    f"{option(field.name)}: {wrong}. Received: {value!r}"
                )
    for kind in type(config).__mro__:
        if check := vars(kind).get("check"):
            check(config)


def without_none(hint):
    """The type of an option that may be None: `int | None` is `int`."""
    if get_origin(hint) not in (Union, UnionType):
        return hint
    kinds = [kind for kind in get_args(hint) if kind is not type(None)]
    return kinds[0] if len(kinds) == 1 else hint


def refuse_unread(config, given):
    """Refuses options that nothing reads because of what others choose.

    A class of options, or a recipe, says in a method `unread` which these are:
    it yields what they need, and the names of their fields.

    Args:
        config: a dataclass instance.
        given: dict, field -> value of the options that are given. A value that
            switches something off, as 0 does, is true without it, too.

    Raises:
        UserError: that names the first such option.
    """
    for kind in type(config).__mro__:
        unread = vars(kind).get("unread", lambda config: ())
        for needs, names in unread(config):
            for name in filter(given.get, names):
                raise UserError(f"{option(name)} needs {needs}.")


_RULES = (Limits, MultipleOf, _Even, _NewDirectory)
# Types of which no value of another type is valid: 8.0, or true for 1.
_WHOLE = {bool: "true or false", int: "an integer"}
# Options without which a model predicts the same twice.
_RANDOM = ("dropout", "piece_dropout", "sentence_dropout", "masks", "stretch")


def option(name):
    """The option of a field: `batch_tokens` is `--batch-tokens`.

    A word that Python reserves has an underscore at its end: `from_`.
    """
    return f"--{name.rstrip('_').replace('_', '-')}"
