"""What a recipe reads: a group of options for each kind of data."""

import dataclasses

from kseq.command_line.option_types.value_types import (
    SAMPLE_RATES,
    DType,
    MelBands,
    Metric,
    MultipleOf,
    Network,
    NonNegativeFloat,
    NonNegativeInt,
    Pieces,
    PositiveFloat,
    PositiveInt,
    Rate,
    Seconds,
    SmallInt,
    VocabSize,
    option,
)
from kseq.data.files.prepared_folder import PreparedFolder, prepared_folder
from kseq.data.files.tables import kind_of
from kseq.data.files.tar_members import is_tar
from kseq.data.files.url_files import is_url
from kseq.user_error import UserError


@dataclasses.dataclass(frozen=True, kw_only=True)
class TranslationOptions:
    """The pairs of sentences of a translator, and how they are read.

    A recipe that inherits them has `seed`.
    """

    train: tuple[str, ...] | None = None  # files or prepared folder; else dates
    validation: tuple[str, ...] | None = None  # default: held out of --train
    columns: tuple[str, ...] = ()  # names of source, target (and alignment)
    weights: tuple[PositiveFloat, ...] = ()  # relative sampling rates
    pieces: tuple[Pieces, ...] = ("bpe",)  # two types: one for each side
    vocab_size: VocabSize = 8000  # maximum, for both sides together
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
        if len(self.pieces) > 2:
            raise UserError(
                "--pieces takes one type for source and target together, or "
                f"two. Received: {' '.join(self.pieces)}"
            )
        if self.pretraining_steps and len(self.pieces) > 1:
            raise UserError(
                "--pretraining-steps needs one vocabulary of source and "
                "target: one type of --pieces. "
                f"Received: {' '.join(self.pieces)}"
            )
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
                "--columns SOURCE TARGET ALIGNMENT needs --guided-alignment "
                "0.1, or another weight, and vice versa. Received: --columns "
                f"{' '.join(self.columns)} --guided-alignment "
                f"{self.guided_alignment:g}"
            )
        if guided and not has_alignment and not _have_alignments(self.train):
            raise UserError(
                "--guided-alignment needs word alignments: give --columns "
                "SOURCE TARGET ALIGNMENT, to `kseq prepare` as well."
            )

    def unread(self):
        count = _num_corpora(self.train)
        if count not in (None, len(self.weights)):
            yield f"a number for each corpus of --train: {count}", ("weights",)


def _num_corpora(train):
    """The number of texts with a weight each; None if it is not known yet."""
    if folder := prepared_folder(train):
        with PreparedFolder(folder).opened("pairs") as record:
            return len(record["counts"])
    if any(map(is_url, train or ())):
        return None
    tables = sum(kind_of(path) is not None for path in train or ())
    return max(tables + (len(train or ()) - tables) // 2, 1)


def _have_alignments(train):
    """Whether prepared pairs have alignments; those at a URL may have them."""
    if folder := prepared_folder(train):
        with PreparedFolder(folder).opened("pairs") as record:
            return "alignment" in record["arrays"]
    return any(map(is_url, train or ()))


def _prepared_with(train, kind, name):
    """What computed the features of a prepared folder; None without one."""
    folder = prepared_folder(train)
    if folder is None:
        return None
    with PreparedFolder(folder).opened(kind) as record:
        return {**(record[name] or {})}


def _check_prepared(config, name, prepared):
    value = getattr(config, name)
    if prepared not in (None, value):
        raise UserError(
            f"{config.train} is prepared with {option(name)} {prepared}; "
            f"expected {value}."
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class DialogueOptions:
    """The dialogues of a recipe, and how much of them is read."""

    train: str | None = None  # file or prepared folder; default: small talk
    validation: str | None = None  # default: held out of --train
    max_turns: PositiveInt = 5  # last turns that are read
    max_pieces: PositiveInt = 60  # pieces per turn; longer turns are cut
    max_length: PositiveInt = 320  # pieces per side; longer ones are skipped
    vocab_size: VocabSize = 8000  # maximum number of pieces


@dataclasses.dataclass(frozen=True, kw_only=True)
class PictureOptions:
    """The pictures of a recipe, their captions, and their features.

    A recipe with a choice of decoders, one of them "transformer", in its field
    `decoder` has `units` and `num_heads`.
    """

    train: str | None = None  # table or prepared folder; default: scenes
    validation: str | None = None  # default: held out of --train, by picture
    columns: tuple[str, ...] = ()  # names or numbers of picture and caption
    features: str = ""  # .npz file with the features of the pictures
    images: str = ""  # folder of the pictures, to compute features
    network: Network = "EfficientNetB0"  # of keras.applications, for features
    network_weights: str = "imagenet"  # downloaded once, or a file
    plain: bool = False  # captions in lower case, without punctuation

    def check(self):
        prepared = _prepared_with(self.train, "captions", "network") or {}
        _check_prepared(self, "network", prepared.get("name"))
        if getattr(self, "decoder", "") == "transformer" and (
            wrong := MultipleOf("num_heads").check(self.units, self.num_heads)
        ):
            raise UserError(f"--units: {wrong}. Received: {self.units}")
        has_pictures = self.features or self.images
        if not self.train or has_pictures or prepared_folder(self.train):
            return
        if not is_tar(self.train):
            raise UserError(
                "--train needs pictures: give their folder with --images, or "
                "their features, an .npz file, with --features."
            )

    def unread(self):
        names = ("network", "network_weights")
        prepared = _prepared_with(self.train, "captions", "network")
        if self.features:
            yield "pictures instead of --features", names
        elif prepared is not None and "name" not in prepared:
            yield f"pictures, but {self.train} has ready features", names


@dataclasses.dataclass(frozen=True, kw_only=True)
class SpeechOptions:
    """The recordings of a recipe, and what an encoder makes of their frames."""

    train: str | None = None  # table or prepared folder; default: Morse code
    validation: str | None = None  # default: held out of --train
    columns: tuple[str, ...] = ()  # names or numbers of file and transcript
    audio: str = ""  # folder of the recordings; default: that of each table
    resample: NonNegativeInt = 0  # new sample rate; 0: that of the recordings
    features: str = ""  # .npz file of features, instead of recordings
    max_seconds: Seconds = 30.0  # longer ones are skipped
    num_mels: MelBands = 40  # features of a frame of 25 ms, every 10 ms
    pyramid_layers: SmallInt = 3  # later ones halve the time steps
    stretch: Rate = 0.1  # stretch time by up to this fraction
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

    def check(self):
        if self.resample and (wrong := SAMPLE_RATES.check(self.resample)):
            raise UserError(f"--resample: {wrong}. Received: {self.resample}")
        prepared = _prepared_with(self.train, "recordings", "preprocessor")
        _check_prepared(self, "num_mels", (prepared or {}).get("num_mels"))

    def unread(self):
        names = ("audio", "resample", "num_mels")
        prepared = _prepared_with(self.train, "recordings", "preprocessor")
        if self.features:
            yield "recordings instead of --features", names
        elif prepared is not None and "num_mels" not in prepared:
            yield f"recordings, but {self.train} has ready features", names
        most = (prepared or {}).get("max_seconds")
        if isinstance(most, int | float) and self.max_seconds > most:
            found = f"{self.train} has those of up to {most:g} seconds"
            yield f"longer recordings: {found}", ("max_seconds",)
