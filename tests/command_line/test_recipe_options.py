import dataclasses
import importlib.util
import json
import math
import shutil
from pathlib import Path

import pytest

from kseq.command_line.command_parser import CommandParser
from kseq.command_line.option_types import (
    DataFile,
    FineTuningOptions,
    LossOptions,
    OptimizerOptions,
    PairOptions,
    PositiveFloat,
    PositiveInt,
    RecurrentDecoderOptions,
    RecurrentOptions,
    SpeechOptions,
    TransformerOptions,
    TranslationOptions,
    WordVectorOptions,
    check_options,
    refuse_unread,
)
from kseq.command_line.recipe_options import read_options
from kseq.data import PairTokenizers, prepare_pairs
from kseq.data.files.prepared_folder import FORMAT
from kseq.sources.first_rows import read_first_rows
from kseq.user_error import UserError
from tests.recipes import load_recipe


@dataclasses.dataclass(frozen=True)
class Config:
    train: tuple[str, ...] | None = None
    run: str = "runs/new"
    from_: str = ""
    overwrite: bool = False
    units: PositiveInt = 512
    steps: PositiveInt = 2000
    vocab_size: PositiveInt = 8000


DATES = Config(units=192, steps=450)


@pytest.fixture
def make_run(here):
    """A function: writes what makes a directory a run."""
    for name in ("c", "d"):
        Path(name).write_text("x")

    def make_run(path, config):
        Path(path).mkdir(parents=True)
        values = dataclasses.asdict(config)
        (Path(path) / "config.json").write_text(json.dumps(values))
        (Path(path) / "environment.json").write_text("{}")

    return make_run


def read(*words):
    options = read_options(Config(), DATES, words, prog="x", description="")
    return options.config


def test_a_prepared_folder_has_its_tokenizer(here):
    def prepare(**models):
        files = {}
        for name, content in models.items():
            Path(f"out/{name}.model").write_text(content)
            files[f"{name}.model"] = {"bytes": 1, "sha256": content}
        record = {"format": FORMAT, "files": files}
        Path("out/prepared.json").write_text(json.dumps(record))

    Path("out").mkdir()
    prepare()
    words = ["--train", "out", "--vocab-size", "400"]
    assert read(*words).vocab_size == 400  # of transcripts, for example
    prepare(source="a", target="b")
    with pytest.raises(UserError, match="--vocab-size is part of a prepared"):
        read(*words)
    assert read(*words[:2]).train == ("out",)


def test_sizes_are_inherited_but_no_data_and_no_schedule(make_run):
    make_run("runs/old", Config(train=("a", "b"), units=7, steps=9))
    new = read("--from", "runs/old", "--train", "c", "d")
    assert new == Config(train=("c", "d"), from_="runs/old", units=7)
    assert read("--from", "runs/old").steps == DATES.steps
    assert read("--from", "runs/old", "--units", "8").units == 8


def test_another_tokenizer_is_no_accident(make_run):
    @dataclasses.dataclass(frozen=True)
    class Tokenized(Config):
        pieces: tuple[str, ...] = ("bpe",)
        new_tokenizer: bool = False

    def tokenized(*words):
        given = ("--from", "runs/old", "--train", "c", "d", *words)
        config = Tokenized()
        return read_options(config, config, given, prog="x", description="")

    make_run("runs/old", Tokenized(vocab_size=9))
    assert tokenized("--vocab-size", "9").config.vocab_size == 9
    other = ("--vocab-size", "7", "--new-tokenizer")
    assert tokenized(*other).config.vocab_size == 7
    with pytest.raises(UserError, match=r"needs --new-tok.* of runs/old has 9"):
        tokenized("--vocab-size", "7")
    with pytest.raises(UserError, match=r"--pieces word needs .* has bpe\."):
        tokenized("--pieces", "word")


def test_a_run_before_0_3_has_sinusoidal_positions(make_run):
    @dataclasses.dataclass(frozen=True)
    class Positions(Config):
        positions: str = "rotary"

    def positions(*words):
        options = read_options(
            *(Positions(), Positions(), words), prog="x", description=""
        )
        return options.config.positions

    make_run("runs/old", Config())
    make_run("runs/learned", Positions(positions="learned"))
    train = ("--train", "c", "d")
    assert positions(*train) == "rotary"
    assert positions("--from", "runs/old", *train) == "sinusoidal"
    assert positions("--from", "runs/learned", *train) == "learned"


def test_an_lstm_before_0_3_has_the_general_score(make_run):
    @dataclasses.dataclass(frozen=True)
    class Attention(Config):
        attention: str = "concat"

    @dataclasses.dataclass(frozen=True)
    class Translation(Attention):
        local: str = "none"

    def attention(config, *words):
        options = read_options(config, config, words, prog="x", description="")
        return options.config.attention

    make_run("runs/old", Config())
    words = ("--from", "runs/old", "--train", "c", "d")
    assert attention(Translation(), *words) == "general"
    assert attention(Attention(), *words) == "concat"
    make_run("runs/new", Translation())
    words = ("--from", "runs/new", *words[2:])
    assert attention(Translation(), *words) == "concat"


def test_a_run_that_has_started_needs_no_other(make_run):
    make_run("runs/old", Config(units=7))
    words = ("--from", "runs/old", "--train", "c", "d")
    new = read(*words)
    make_run("runs/new", new)
    shutil.rmtree("runs/old")
    assert read(*words) == new
    with pytest.raises(SystemExit, match="2"):
        read(*words, "--run", "runs/other")


def test_words_after_two_dashes_are_no_options():
    parser = CommandParser()
    parser.add_argument("--batch-size")
    parser.add_argument("path")
    options = parser.parse_args(["--batch_size=3", "--", "--my_run=1"])
    assert (options.batch_size, options.path) == ("3", "--my_run=1")


@dataclasses.dataclass(frozen=True)
class Inherits(FineTuningOptions):
    width: PositiveInt = 4  # of a page
    run: str = "runs/x"
    steps: PositiveInt = 30
    learning_rate: PositiveFloat = 0.1  # constant


@dataclasses.dataclass(frozen=True)
class Optimizes(Inherits, OptimizerOptions):
    pass


def test_a_new_run_has_an_optimizer_of_its_own(make_run):
    chosen = {
        "optimizer": "lion",
        "schedule": "cosine",
        "warmup_steps": 9,
        "weight_decay": 0.1,
        "patience": 3,
        "freeze": ("encoder_*",),
        "lora": 2,
    }
    make_run("runs/old", Optimizes(**chosen, ema=0.5, width=7))
    words = ["--from", "runs/old", "--run", "runs/new"]
    options = read_options(
        Optimizes(), Optimizes(), words, prog="x", description="One."
    )
    expected = Optimizes(from_="runs/old", run="runs/new", ema=0.5, width=7)
    assert options.config == expected


def test_shared_options_have_the_help_of_their_base_class(capsys):
    with pytest.raises(SystemExit, match="0"):
        read_options(
            Inherits(), Inherits(), ["-h"], prog="x", description="One."
        )
    own, shared = capsys.readouterr().out.split("options of training")
    assert "of a page (default: 4)" in own and "--steps" not in own
    for text in (
        "the directory of the run (default: runs/x)",
        "delete the run and restart (default: False)",
        "--steps N (default: 30)",
        "constant (default: 0.1)",
        "--from TEXT a run to fine-tune",
    ):
        assert text in " ".join(shared.split())


def test_shared_options_are_checked_as_others_are():
    with pytest.raises(UserError, match="--seed: expected an integer"):
        check_options(Inherits(seed=-1))


PRESETS = {"big": {"units": 1024}, "tiny": {"units": 8}}


def test_a_preset_gives_defaults(make_run, capsys):
    def read(*words):
        return read_options(
            *(Config(), DATES, words, None, PRESETS), prog="x", description=""
        ).config

    assert read("--preset", "big") == Config(units=1024, steps=DATES.steps)
    assert read("--units", "3", "--preset", "tiny").units == 3
    assert read().units == DATES.units
    make_run("runs/old", Config(units=7))
    with pytest.raises(SystemExit, match="2"):
        read("--from", "runs/old", "--preset", "big")
    assert "--preset: not allowed with --from" in capsys.readouterr().err


@dataclasses.dataclass(frozen=True)
class Blocks(TransformerOptions):
    model: str = "transformer"
    model_dim: PositiveInt = 12
    heads: PositiveInt = 4


@dataclasses.dataclass(frozen=True)
class Tagger(TransformerOptions):
    model: str = "lstm"
    dim: PositiveInt = 12
    heads: PositiveInt = 4
    positions: str = "rotary"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"positions": "rotary"}, "even size.*Received: 12 / 4"),
        ({"kv_heads": 3}, "--heads: expected a multiple of --kv-heads 3"),
        ({"model_dim": 10}, "--model-dim: expected a multiple of --heads 4"),
        ({"model_dim": 9, "heads": 1}, "--model-dim: expected an even number"),
    ],
)
def test_blocks_that_do_not_fit(given, message):
    check_options(Blocks())
    with pytest.raises(UserError, match=message):
        check_options(Blocks(**given))


def test_blocks_of_another_model_do_not_limit_its_sizes():
    check_options(Tagger(dim=9))
    with pytest.raises(UserError, match="--dim: expected a multiple of --head"):
        check_options(Tagger(model="transformer", dim=9))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"order": "bahdanau", "input_feeding": True},
            "--order bahdanau needs --no-input-feeding",
        ),
        (
            {"attention": "none", "input_feeding": True},
            "--attention none needs --no-input-feeding",
        ),
        (
            {"attention": "location_aware", "input_feeding": False},
            "location_aware needs --input-feeding or --order bahdanau",
        ),
        (
            {"attention": "location", "last_states": 2},
            "--last-states needs attention by content",
        ),
        (
            {"attention": "additive", "local": "monotonic"},
            "--local monotonic needs --attention dot, scaled_dot, general",
        ),
        (
            {"local": "predictive", "last_states": 4},
            "--local predictive needs --last-states 0",
        ),
        ({"copy": True, "attention": "none"}, "--copy needs attention"),
        ({"reverse_source": True}, "--reverse-source needs --no-bidirectional"),
        (
            {"sampling_schedule": "linear", "sampling_rate": 1.1},
            "--sampling-rate: expected a number from 0 to 1. Received: 1.1",
        ),
        (
            {"sampling_schedule": "linear", "sampling_steps": 0},
            "--sampling-steps: expected an integer of at least 1",
        ),
        (
            {"sampling_schedule": ""},
            "--sampling-schedule: expected one of none",
        ),
    ],
)
def test_recurrent_layers_that_do_not_fit(given, message):
    check_options(RecurrentOptions())
    with pytest.raises(UserError, match=message):
        check_options(RecurrentOptions(**given))


def test_only_pieces_that_can_be_split_are_split():
    for pieces in (("bpe",), ("unigram", "bpe")):
        check_options(TranslationOptions(subword_dropout=0.1, pieces=pieces))
    check_options(TranslationOptions(pieces=("char",)))
    with pytest.raises(UserError, match="Received: --pieces bpe char"):
        check_options(
            TranslationOptions(subword_dropout=0.1, pieces=("bpe", "char"))
        )


def test_pretraining_needs_one_vocabulary():
    check_options(TranslationOptions(pretraining_steps=2))
    with pytest.raises(UserError, match="one type of --pieces"):
        check_options(
            TranslationOptions(pretraining_steps=2, pieces=("bpe", "char"))
        )


def test_a_guided_alignment_needs_a_third_column_and_fixed_pieces():
    columns = ("1", "2", "3")
    guided = {"guided_alignment": 0.1}
    check_options(TranslationOptions(columns=columns, **guided))
    for given, message in (
        ({"columns": columns}, "--columns 1 2 3 --guided-alignment 0$"),
        ({**guided, "columns": columns[:2]}, "--columns 1 2 --guided"),
        ({**guided, "subword_dropout": 0.1}, "needs --subword-dropout 0"),
        (guided, "needs word alignments: give --columns SOURCE TARGET"),
        ({**guided, "train": ("a.tsv",)}, "needs word alignments"),
        ({"guided_alignment": -1.0}, "a number of at least 0. Received: -1.0"),
        ({"guided_alignment": math.nan}, "a number of at least 0"),
        ({"guided_alignment": math.inf}, "a number of at least 0"),
    ):
        with pytest.raises(UserError, match=message):
            check_options(TranslationOptions(**given))

    @dataclasses.dataclass(frozen=True)
    class Recurrent(TranslationOptions, RecurrentOptions):
        seed: int = 1

    with pytest.raises(UserError, match="--guided-alignment needs attention"):
        check_options(Recurrent(attention="none", columns=columns, **guided))


def test_sizes_that_do_not_fit_their_model():
    captions = load_recipe("caption_images").Config
    check_options(captions(num_heads=5))  # of the other decoder
    with pytest.raises(UserError, match=r"--units: expected a mult.*heads 5"):
        check_options(captions(decoder="transformer", num_heads=5))
    algorithms = load_recipe("learn_algorithms").Config
    check_options(algorithms(slots=3))
    with pytest.raises(UserError, match="--slots: expected an integer from 3"):
        check_options(algorithms(slots=2))


def test_weights_are_those_of_corpora(here):
    prepared("out", "pairs", counts=[7, 9])
    for train, count in (
        (["a.tsv"], 1),
        (["a.tsv", "b.de", "b.en", "c.jsonl.gz"], 3),
        (["b.de", "b.en", "c.de", "c.en"], 2),
        (["out"], 2),
    ):
        for weights in range(1, 5):
            config = TranslationOptions(train=train, weights=(1.0,) * weights)
            if weights == count:
                refuse_unread(config, {"weights": config.weights})
                continue
            message = f"--weights needs a number for each .*--train: {count}"
            with pytest.raises(UserError, match=message):
                refuse_unread(config, {"weights": config.weights})
    config = TranslationOptions(train=["gs://a/b"], weights=(1.0,) * 3)
    refuse_unread(config, {"weights": config.weights})  # known when it is there


def test_a_guided_alignment_of_prepared_pairs(tmp_path):
    table = tmp_path / "a.tsv"
    table.write_text("ein Hund\ta dog\t0-0 1-1\nja\tyes\t0-0\n")
    tokenizers = PairTokenizers(300, ("char",))
    guided = {}
    for columns in (("1", "2"), ("1", "2", "3")):
        folder = str(tmp_path / f"{len(columns)}")
        prepare_pairs(folder, [table], columns=columns, tokenizers=tokenizers)
        guided[len(columns)] = TranslationOptions(
            train=(folder,), guided_alignment=0.1
        )
    check_options(guided[3])
    with pytest.raises(UserError, match="needs word alignments"):
        check_options(guided[2])
    (tmp_path / "3" / "source.values").unlink()
    with pytest.raises(
        UserError, match=r"is broken: source\.values is missing"
    ):
        check_options(guided[3])
    at_url = TranslationOptions(train=("gs://a/b",), guided_alignment=0.1)
    check_options(at_url)  # which is read after it has been copied


def test_batches_of_pairs_are_those_of_the_options():
    @dataclasses.dataclass(frozen=True)
    class Pairs(PairOptions):
        run: str = "runs/a"
        steps: int = 1
        learning_rate: float = 1.0
        batch_tokens: int = 64
        max_length: int = 9

    @dataclasses.dataclass(frozen=True)
    class Translated(TranslationOptions):
        seed: int = 3

    pairs = {"batch_tokens": 64, "max_length": 9, "seed": 2}
    assert Pairs(seed=2).batch_arguments() == pairs
    given = {"subword_dropout": 0.1, "guided_alignment": 0.2}
    assert Translated(**given).batch_arguments() == {
        "batch_tokens": 4096,
        "max_length": 100,
        "seed": 3,
        "subword_dropout": 0.1,
        "with_alignment": True,
    }


@pytest.mark.parametrize(
    ("given", "feeds"),
    [
        ({}, True),
        ({"attention": "location_aware"}, True),
        ({"input_feeding": False}, False),
        ({"order": "bahdanau"}, False),
        ({"attention": "none"}, False),
    ],
)
def test_input_feeding_is_the_default_in_the_order_of_luong(given, feeds):
    options = RecurrentOptions(**given)
    check_options(options)
    assert options.recurrent_arguments()["input_feeding"] is feeds


@dataclasses.dataclass(frozen=True)
class FineTuned(FineTuningOptions, WordVectorOptions):
    run: str = "runs/a"
    steps: PositiveInt = 1
    learning_rate: PositiveFloat = 1.0
    pretraining_steps: int = 0


def test_a_run_that_starts_from_another_has_no_other_vectors():
    check_options(FineTuned(vectors="glove.txt"))
    with pytest.raises(UserError, match=r"--from has embeddings .* --vectors"):
        check_options(FineTuned(vectors="glove.txt", from_="runs/b"))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "--lora needs --from"),
        ({"lora": 0, "new_tokenizer": True}, "--new-tokenizer needs --from"),
        (
            {"from_": "runs/b", "new_tokenizer": True},
            "trains no embeddings",
        ),
        ({"from_": "runs/b", "pretraining_steps": 1}, "--pretraining-steps 0"),
        ({"from_": "runs/b", "lora": -1}, "--lora: expected an integer from 0"),
        ({"from_": "runs/b", "lora": 10**6}, "--lora: .* to 1000. Received"),
    ],
)
def test_lora_that_cannot_be(given, message):
    check_options(FineTuned(from_="runs/b", lora=8))
    with pytest.raises(UserError, match=message):
        check_options(FineTuned(**{"lora": 8, **given}))


@dataclasses.dataclass(frozen=True)
class Decoder(RecurrentDecoderOptions):
    run: str = "runs/x"
    from_: str = ""
    overwrite: bool = False
    model: str = "joined"
    decoder: str = "lstm"
    coverage: float = 0.0
    context_gate: bool = False


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"model": "hierarchical", "attention": "dot"},
            "--attention dot needs --model joined or --model single",
        ),
        (
            {"attention": "none", "coverage": 0.5},
            "--attention none needs --coverage 0",
        ),
        (
            {"attention": "none", "context_gate": True},
            "--attention none needs --no-context-gate",
        ),
        ({"attention": "location"}, "--attention: expected one of none, dot"),
    ],
)
def test_decoders_that_do_not_fit(given, message):
    check_options(Decoder(decoder="transformer"))
    with pytest.raises(UserError, match=message):
        check_options(Decoder(**given))


@dataclasses.dataclass(frozen=True)
class Recipe(SpeechOptions, FineTuningOptions, LossOptions, OptimizerOptions):
    run: str = "runs/x"
    steps: PositiveInt = 30
    learning_rate: PositiveFloat = 0.1
    dropout: float | None = 0.0


@dataclasses.dataclass(frozen=True)
class Sampled(RecurrentOptions, LossOptions):
    seed: int = 1
    dropout: float = 0.1


@pytest.mark.parametrize(
    ("config", "given", "message"),
    [
        (
            Blocks(model="lstm"),
            {"kv_heads": 2},
            r"--kv-heads needs --model transformer. Received: --model lstm\.",
        ),
        (Tagger(), {"heads": 4}, "--heads needs --model transformer"),
        (Tagger(), {"positions": "rotary"}, "--positions needs --model tra"),
        (RecurrentOptions(), {"window": 10}, "needs --local monotonic or"),
        (
            RecurrentOptions(attention="none"),
            {"order": "luong"},
            "--order needs attention. Received: --attention none",
        ),
        (Decoder(), {"sampling_rate": 0.5}, "needs --sampling-schedule"),
        (Decoder(), {"sampling_steps": 5}, "needs --sampling-schedule"),
        (Decoder(decoder="transformer"), {"cell": "lstm"}, "--decoder lstm"),
        (Decoder(decoder="transformer"), {"order": "luong"}, "--decoder lstm"),
        (
            Recipe(schedule="range_test"),
            {"warmup_steps": 9},
            "--warmup-steps needs a --schedule other than range_test",
        ),
        (Recipe(stretch=0.0, masks=0), {"r_drop": 1.0}, "needs --dropout"),
        (
            Sampled(sampling_schedule="linear", dropout=0.0),
            {"r_drop": 1.0},
            "needs --dropout",
        ),
        (Recipe(features="a.npz"), {"num_mels": 40}, "--num-mels needs recor"),
    ],
)
def test_options_that_nothing_reads(config, given, message):
    """Also with the value of their defaults, but not if they say 0."""
    refuse_unread(config, {"steps": 3, **dict.fromkeys(given, 0)})
    refuse_unread(config, {})
    with pytest.raises(UserError, match=message):
        refuse_unread(config, given)


@dataclasses.dataclass(frozen=True)
class OfTwoTypes:
    size: int | str | None = "large"


def test_an_option_that_may_be_none_is_checked():
    for value in (None, 0, 0.5):
        check_options(TranslationOptions(dropout=value))
    for value in (-0.1, 1.0, "0.3"):
        with pytest.raises(UserError, match="--dropout: expected a number"):
            check_options(TranslationOptions(dropout=value))
    with pytest.raises(UserError, match="--input-feeding: expected true or"):
        check_options(RecurrentOptions(input_feeding=1))
    for size in ("large", 3, None):  # types that are not checked
        check_options(OfTwoTypes(size))
    # None is dropout whose rate depends on the data.
    recipe = Recipe(stretch=0.0, masks=0, dropout=None)
    refuse_unread(recipe, {"r_drop": 1.0})


def test_only_given_options_are_refused(make_run):
    """No inherited ones, and none of a run that has started with them."""

    def read(*words):
        config = Decoder(run="runs/new")
        return read_options(config, config, words, prog="x", description="")

    inherited = Decoder(sampling_schedule="linear", sampling_rate=0.5)
    make_run("runs/old", inherited)
    words = ("--from", "runs/old", "--sampling-schedule", "none")
    assert read(*words).config.sampling_rate == 0.5
    with pytest.raises(UserError, match="--sampling-rate needs"):
        read(*words, "--sampling-rate", "0.5")
    make_run("runs/new", inherited)
    read(*words, "--sampling-rate", "0.5")
    with pytest.raises(UserError, match="--sampling-rate needs"):
        read(*words, "--sampling-rate", "0.5", "--overwrite")


@dataclasses.dataclass(frozen=True)
class Writer:
    train: str | None = None
    validation: str | None = None
    column: str = "text"


def test_plain_text_has_no_column(here):
    Path("a.txt").write_text("x")
    Path("b.csv").write_text("y\nb\n")
    for train, validation in ("ab", "ba", "bb", "aa"):
        paths = {"a": "a.txt", "b": "b.csv"}
        words = "--train", paths[train], "--validation", paths[validation]
        words += ("--column", "y")
        names = {"prog": "x", "description": ""}
        if "b" in (train, validation):
            read_options(Writer(), Writer(), words, "text", **names)
            continue
        with pytest.raises(UserError, match=r"a\.txt is plain text, which"):
            read_options(Writer(), Writer(), words, "text", **names)


def test_options_of_files_need_files(here):
    Path("a.tsv").write_text("x\ty\n")
    preprocessor = {"num_mels": 8, "max_seconds": 9.5}
    prepared("out", "recordings", preprocessor=preprocessor)

    def read(*words):
        config = Recipe()
        names = {"prog": "x", "description": ""}
        return read_options(config, config, words, "transcripts", **names)

    for given in (["--columns", "1", "2"], ["--audio", "."]):
        read("--train", "a.tsv", *given)
        with pytest.raises(UserError, match=f"{given[0]} needs --train"):
            read(*given)
        with pytest.raises(UserError, match=f"{given[0]} is part of a prep"):
            read("--train", "out", *given)
    words = "--train", "out", "--num-mels", "8"
    read(*words)  # which must be theirs
    assert read(*words, "--max-seconds", "9").config.max_seconds == 9
    message = r"longer recordings: out has those of up to 9\.5 seconds"
    with pytest.raises(UserError, match=message):
        read(*words, "--max-seconds", "10")
    with pytest.raises(UserError, match="with --num-mels 8; expected 40"):
        read("--train", "out")


@pytest.mark.parametrize(
    ("recipe", "record", "given"),
    [
        (
            *("caption_images", {"kind": "captions", "network": None}),
            ["--network", "VGG16"],
        ),
        (
            *("caption_images", {"kind": "captions", "network": None}),
            ["--network", "EfficientNetB0"],
        ),
        *(
            (recipe, {"kind": "recordings", "preprocessor": {}}, words)
            for recipe in ("transcribe_speech", "spot_words")
            for words in (["--num-mels", "80"], ["--num-mels", "40"])
        ),
    ],
)
def test_how_features_are_computed_that_are_prepared_already(
    here, recipe, record, given
):
    prepared("out", **record)
    config = load_recipe(recipe).Config()

    def read(*words):
        words = "--train", "out", *words
        return read_options(config, config, words, prog="x", description="")

    read()
    message = rf"{given[0]} needs \w+, but out has ready features"
    with pytest.raises(UserError, match=message):
        read(*given)


def test_another_network_than_that_of_prepared_captions(here):
    config = load_recipe("caption_images").Config()

    def read(*words):
        words = "--train", "out", *words
        return read_options(config, config, words, prog="x", description="")

    prepared("out", "captions", network={"name": "VGG16"})
    read("--network", "VGG16")
    with pytest.raises(UserError, match="--network VGG16; expected Efficient"):
        read()
    prepared("out", "captions", network="VGG16")
    with pytest.raises(UserError, match="out is broken: prepared"):
        read()


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        *(("pairs", "pairs"), ("documents", "documents"), ("text", "text")),
        *(("tags", "sentences"), ("dialogues", "dialogues")),
        *(("captions", "captions"), ("transcripts", "recordings")),
    ],
)
def test_other_prepared_data_are_refused(here, content, kind):
    """As the recipe itself would do, after TensorFlow has started."""
    prepared("right", kind)
    prepared("other", "numbers")
    Path("begun").mkdir()
    Path("begun/plan.json").touch()

    def read(*words):
        names = {"prog": "x", "description": ""}
        return read_options(Reader(), Reader(), words, content, **names)

    assert read("--train", "right").config.train == "right"
    with pytest.raises(UserError, match=f"'numbers'; expected '{kind}'"):
        read("--train", "other")
    with pytest.raises(UserError, match="begun is not complete: start"):
        read("--train", "begun")
    with pytest.raises(UserError, match="right is a directory"):
        read_first_rows(content, [], ["right"])


@pytest.mark.parametrize(
    ("name", "words", "message"),
    [
        ("translate_lstm", ["--vocab-size", "260"], "has at least 261 pieces"),
        ("chat", ["--vocab-size", "260"], "has at least 261 pieces"),
        ("write_text", ["--vocab-size", "4"], "has at least 5 pieces"),
        ("write_text", ["--length", "1"], "an integer of at least 2"),
        ("translate_lstm", ["--pieces", *["bpe"] * 3], "together, or two"),
        ("translate_lstm", ["--weights", "0"], "expected a positive number"),
        ("translate_lstm", ["--weights", "1", "2"], "corpus of --train: 1."),
        ("translate_lstm", ["--metrics", "comet"], "needs the program comet-"),
        ("chat", ["--track", "wandb"], "wandb needs its package: pip install"),
        ("caption_images", ["--network", "VGG"], "the name of a network of"),
        ("transcribe_speech", ["--num-mels", "257"], "from 1 to 256"),
        ("spot_words", ["--max-seconds", "36001"], "from 0.01 to 36000"),
        ("transcribe_speech", ["--max-seconds", "0.009"], "from 0.01 to"),
        ("spot_words", ["--resample", "99"], "100 to 192000 samples per"),
        ("caption_images", [], "--train needs pictures"),
        ("caption_images", ["--images", "b"], "b is not a folder"),
        ("caption_images", ["--features", "b"], "There is no file 'b'"),
        ("transcribe_speech", ["--audio", "b"], "b is not a folder"),
        ("classify_documents", ["--vectors", "b"], "There is no file 'b'"),
    ],
)
def test_what_a_recipe_would_refuse_later(
    here, monkeypatch, capsys, name, words, message
):
    """After TensorFlow has started, which takes five seconds."""
    find = importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec",
        lambda name: None if name == "wandb" else find(name),
    )
    monkeypatch.setattr("shutil.which", lambda name: None)
    Path("a.csv").write_text("label,text\na,b\n")
    config = load_recipe(name).Config()
    words = ["--train", "a.csv", *words]
    content = "text" if name == "write_text" else "documents"
    with pytest.raises((UserError, SystemExit)) as error:
        read_options(config, config, words, content, prog="x", description="")
    assert message in f"{error.value}{capsys.readouterr().err}"


def test_text_that_is_needed_is_not_that_of_prepared_data(here, capsys):
    prepared("out", "dialogues")
    with pytest.raises(SystemExit):
        read_options(
            *(OfFiles(), OfFiles(), ["--train", "out"], "dialogues"),
            **{"prog": "x", "description": ""},
        )
    assert "do not contain the training texts" in capsys.readouterr().err


@dataclasses.dataclass(frozen=True)
class Reader:
    train: str | None = None
    validation: str | None = None


@dataclasses.dataclass(frozen=True)
class OfFiles(Reader):
    train: DataFile | None = None


def prepared(folder, kind, **more):
    """A folder of prepared data, without files."""
    Path(folder).mkdir(exist_ok=True)
    record = {"format": 1, "kind": kind, "files": {}, **more}
    Path(folder, "prepared.json").write_text(json.dumps(record))
