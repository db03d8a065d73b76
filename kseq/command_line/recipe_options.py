"""The options of a recipe: the fields of its dataclass."""

import argparse
import dataclasses
import inspect
import io
import itertools
import os
import re
import tokenize
import typing
from pathlib import Path

from kseq.command_line.argument_types import reader
from kseq.command_line.command_parser import CommandParser
from kseq.command_line.option_types import (
    DialogueOptions,
    FineTuningOptions,
    GenerationLossOptions,
    LossOptions,
    OptimizerOptions,
    PictureOptions,
    RecurrentDecoderOptions,
    RecurrentOptions,
    SpeechOptions,
    TrainingOptions,
    TransformerOptions,
    TranslationOptions,
    WordVectorOptions,
    check_options,
    option,
    refuse_unread,
    without_none,
)
from kseq.data.files.corpora import refuse_prepared
from kseq.data.files.prepared_folder import (
    MODELS,
    PreparedFolder,
    prepared_folder,
)
from kseq.data.files.text_files import matching_files
from kseq.data.files.url_files import is_url, refuse_folder_urls
from kseq.data.running_text.text_documents import check_column
from kseq.files import version_0_1
from kseq.files.json_files import read_json
from kseq.files.model_path import is_run, run_path
from kseq.sources.first_rows import read_first_rows
from kseq.terminal import escaped_line
from kseq.user_error import UserError

_OF_TOKENIZERS = ("vocab_size", "pieces", "tokens")
_OF_ONE_VOCABULARY = ("pretraining_steps", "copy", "share_embeddings")
# How files are read; a prepared folder has been made with them.
_OF_FILES = (
    *("validation", "columns", "column", "features", "images", "audio"),
    *("resample", "plain", "network_weights"),
)
_METAVARS = {int: "N", float: "X"}
# Fields of a recipe that a run does not inherit from the one it starts from.
_OF_ONE_RUN = frozenset(
    (
        *("train", "validation", "columns", "weights", "guided_alignment"),
        *("vectors", "features", "images", "audio"),
        *("run", "overwrite", "from_", "new_tokenizer"),
        *("steps", "evaluate_every", "patience", "pretraining_steps", "track"),
        *("optimizer", "schedule", "weight_decay", "freeze", "lora"),
        *("learning_rate", "warmup_steps", "minimum_risk", "risk_samples"),
        "dtype",  # depends on the machine
    )
)


_GROUPS = {
    TranslationOptions: "options of translation",
    DialogueOptions: "options of dialogues",
    PictureOptions: "options of pictures",
    SpeechOptions: "options of speech",
    TransformerOptions: "options of the Transformer",
    RecurrentDecoderOptions: "options of the recurrent layers",
    RecurrentOptions: "options of the recurrent layers",
    TrainingOptions: "options of training",
    FineTuningOptions: "options of training",
    WordVectorOptions: "options of training",
    LossOptions: "options of training",
    GenerationLossOptions: "options of training",
    OptimizerOptions: "options of training",
}


def read_options(
    config, without_files, words, corpus=None, presets=None, **description
):
    """Reads a recipe's config from the words of a command line.

    With `--from RUN` the defaults are those of that run, except for the data
    and the schedule.

    Args:
        config: a dataclass instance. These are the defaults with files of the
            user, that is, with `--train`.
        without_files: the same, the defaults for the built-in corpus.
        words: list of str.
        corpus: what the files contain, see `kseq.run_recipe`.
        presets: dict or None, see there.
        **description: `prog`, and `description` for the help.

    Returns:
        An `argparse.Namespace` of the options that are given and `config`, a
        dataclass instance of valid values.

    Raises:
        SystemExit: after the help, or the message about a wrong option.
        UserError: the message about a wrong value.
    """
    parser = _parser(config, without_files, presets, **description)
    options = parser.parse_args(words)
    fields = {field.name for field in dataclasses.fields(config)}
    given = {
        key: value for key, value in vars(options).items() if key in fields
    }
    defaults = config if "train" in given else without_files
    if preset := getattr(options, "preset", None):
        if given.get("from_"):
            parser.error("argument --preset: not allowed with --from")
        defaults = dataclasses.replace(defaults, **presets[preset])
    # Before a model is trained, or copied, to start from.
    _check_files(given, dataclasses.replace(defaults, **given), corpus)
    if given.get("from_"):
        try:
            path = _config_path(given, defaults)
        except UserError as error:
            parser.error(f"argument --from: {error}")
        defaults = _inherited(path, defaults)
        _refuse_other_tokenizer(given, defaults)
    options.config = dataclasses.replace(defaults, **given)
    check_options(options.config)
    # A run resumes with what an earlier version has ignored.
    if not _resumes(options.config):
        refuse_unread(options.config, given)
    return options


def _check_files(given, config, corpus):
    """DataError for files that are wrong, before TensorFlow is imported.

    Folders are accepted, because a custom recipe may read them.
    """
    splits = [_tuple(given.get(name)) for name in ("train", "validation")]
    folder = prepared_folder(splits[0])
    if folder:
        _refuse_tokenizer_options(folder, given, config)
    if corpus:
        _refuse_options_of_files(folder, given, config)
        _refuse_missing(given, config)
        refuse_folder_urls(config)
        columns = getattr(config, "columns", getattr(config, "column", ()))
        read_first_rows(corpus, *splits, _tuple(columns))
        return
    for path in itertools.chain(*splits):
        if not (is_url(path) or os.path.isdir(path)):
            matching_files(path)


def _refuse_tokenizer_options(folder, given, config):
    """UserError for options that do not fit the tokenizers of a folder."""
    files = PreparedFolder(folder).record()["files"]
    hashes = {files[name]["sha256"] for name in MODELS if name in files}
    if hashes:
        named = [name for name in _OF_TOKENIZERS if name in given]
        refuse_prepared(**{option(name): True for name in named})
    if len(hashes) > 1 and not _resumes(config):
        for name in filter(given.get, _OF_ONE_VOCABULARY):
            raise UserError(
                f"{option(name)} needs one vocabulary of source and target; "
                f"{escaped_line(folder)} has two."
            )


def _refuse_options_of_files(folder, given, config):
    """UserError for options of files, where there are none to read."""
    if folder:
        named = [name for name in _OF_FILES if given.get(name)]
        refuse_prepared(**{option(name): True for name in named})
    if not getattr(config, "train", None):
        for name in (*_OF_FILES, "weights", "network"):
            if given.get(name):
                raise UserError(f"{option(name)} needs --train.")
    elif given.get("column") and not folder:
        splits = config.train, getattr(config, "validation", None)
        paths = itertools.chain.from_iterable(map(_tuple, splits))
        check_column(given["column"], *paths)


def _refuse_missing(given, config):
    """DataError for files beside those of the corpus that are not there."""
    names = ["features"]
    if not _resumes(config):  # which does not read them
        names.append("vectors")
    for path in filter(None, map(given.get, names)):
        if not is_url(path):
            matching_files(path)
    for name in ("images", "audio"):
        path = given.get(name)
        if path and not (is_url(path) or os.path.isdir(path)):
            raise UserError(f"{option(name)}: {path} is not a folder.")


def _resumes(config):
    """Whether the run is there, and is not replaced."""
    overwrites = getattr(config, "overwrite", False)
    return not overwrites and is_run(getattr(config, "run", ""))


def _refuse_other_tokenizer(given, inherited):
    """UserError for a tokenizer other than that of the run of `--from`."""
    for name in _OF_TOKENIZERS:
        kept = getattr(inherited, name, None)
        if given.get(name, kept) != kept and not given.get("new_tokenizer"):
            raise UserError(
                f"{option(name)} {_shown(given[name])} needs --new-tokenizer: "
                f"the tokenizer of {given['from_']} has {_shown(kept)}."
            )


def _tuple(value):
    """The values of an option that takes one or several, or is not given."""
    return (value,) if isinstance(value, str) else tuple(value or ())


def _config_path(given, defaults):
    """The path of the config of `--from`.

    If that run is gone, a new run that has started has the same config.
    """
    path = given["from_"]
    own = given.get("run", getattr(defaults, "run", ""))
    has_own = is_run(own) and not os.path.exists(path)
    return Path(own if has_own else run_path(path)) / "config.json"


def _inherited(path, defaults):
    """The defaults with the config of a run, except data and schedule."""
    missing = version_0_1.missing_options(defaults)
    config = missing | version_0_1.renamed(read_json(path))
    values = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in config.items()
        if hasattr(defaults, key) and key not in _OF_ONE_RUN
    }
    inherited = dataclasses.replace(defaults, **values)
    try:
        check_options(inherited)
    except UserError as error:
        raise UserError(f"{path} is broken: {error}") from error
    return inherited


def _parser(config, without_files, presets, prog, description):
    parser = CommandParser(
        prog=prog,
        usage="%(prog)s [options]",
        description=description,
        epilog=_differences(config, without_files),
        add_help=False,
        argument_default=argparse.SUPPRESS,
    )
    group = parser.add_argument_group("options (defaults with --train)")
    group.add_argument("-h", "--help", action="help", help="show this help")
    if presets:
        group.add_argument(
            "--preset",
            choices=[*presets],
            help="defaults of "
            + ", ".join(map(option, next(iter(presets.values())))),
        )
    shared = _shared_fields(config)
    groups = {
        title: parser.add_argument_group(f"{title} (defaults with --train)")
        for title in dict.fromkeys(_GROUPS.values())
        if title in shared.values()
    }
    hints = typing.get_type_hints(type(config), include_extras=True)
    comments = _comments(type(config))
    fields = [field.name for field in dataclasses.fields(config) if field.init]
    for name in fields:
        default = _shown(getattr(config, name))
        text = comments.get(name, "") + (default and f" (default: {default})")
        groups.get(shared.get(name), group).add_argument(
            option(name),
            dest=name,
            help=text.strip().replace("%", "%%"),
            **_reading(hints[name]),
        )
    if "debug" not in fields:
        groups.get("options of training", group).add_argument(
            "--debug", action="store_true", help="show the traceback of errors"
        )
    return parser


def _shared_fields(config):
    """{name: the title of its group} of the fields that recipes inherit."""
    return {
        field.name: title
        for shared, title in _GROUPS.items()
        if isinstance(config, shared)
        for field in dataclasses.fields(shared)
    }


def _reading(hint):
    """The keyword arguments of argparse for a type."""
    hint = without_none(hint)
    kind = hint.__origin__ if hasattr(hint, "__metadata__") else hint
    arguments = typing.get_args(kind)
    if kind is bool:
        return {"action": argparse.BooleanOptionalAction}
    if typing.get_origin(kind) is tuple:
        [first, *rest] = arguments
        count = "+" if rest == [Ellipsis] else len(arguments)
        return {"nargs": count, "action": _Tuple, **_reading(first)}
    if typing.get_origin(kind) is typing.Literal:
        return {"type": type(arguments[0]), "choices": arguments}
    return {"type": reader(hint), "metavar": _METAVARS.get(kind, "TEXT")}


class _Tuple(argparse.Action):
    def __call__(self, parser, namespace, values, option_string=None):
        setattr(namespace, self.dest, tuple(values))


def _differences(config, without_files):
    """The part of the help about the defaults for the built-in corpus."""
    lines = []
    for field in dataclasses.fields(config):
        value = getattr(without_files, field.name)
        if value != getattr(config, field.name):
            lines.append(f"  {option(field.name):<21} {_shown(value)}")
    if not lines:
        return None
    title = "different defaults without --train (built-in corpus):"
    return "\n".join([title, *lines])


def _shown(value):
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return "" if value is None else str(value)


def _comments(config_class):
    """{name: the comment at the end of its line} of a dataclass's fields.

    A field without a comment has that of the class that it is inherited from.
    """
    comments = {}
    for inherited in reversed(config_class.__mro__[:-1]):  # without object
        comments |= _comments_in_source(inherited)
    return comments


def _comments_in_source(config_class):
    try:
        source = inspect.cleandoc(inspect.getsource(config_class))
    except (OSError, TypeError):  # written in an interactive session
        return {}
    comments, name = {}, None
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if field := re.match(r"\s+(\w+) *:", token.line):
            name = field[1]
        if token.type == tokenize.COMMENT and name:
            comments[name] = token.string.lstrip("# ")
        if token.type == tokenize.NEWLINE:
            name = None
    return comments
