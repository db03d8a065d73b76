"""What comes into a model, described once."""

import dataclasses
from collections.abc import Callable
from typing import Any


@dataclasses.dataclass(frozen=True, eq=False)
class SourceType:
    """What comes into a model: everything that depends on it.

    Commands, the server, loading, the model card and evaluation ask this
    object and compare no names.

    Args:
        name: str, of the input in served signatures and of `input` in
            `task.json`.
        preprocessor: str, the class of `kseq.data` that reads it.
        item: str, one of it, in words.
        lines: str, what the lines of a command have, in words.
        command_line, python, json: str, how the model card gives it on the
            command line, in Python and in a request.
        read_lines: function of a model and the options of a command; gives a
            function of lines, bytes, that makes a list of inputs of them. The
            model has a `path` and a `preprocessor`.
        options: names of the options of commands that are about it.
        content: str, what files for training hold, see `kseq.run_recipe`;
            "" if it is read from no files.
        prepared: str, the kind of a folder that is prepared from them.
        files: str, one such file, in words.
        task: str, what a model does with it that answers with a text, a
            sentence that begins a message; "" if such a model is evaluated on
            two files.
        num_columns: int, columns of a table that are named by `--columns`.
        optional_columns: int, how many more a table may have.
        more_columns: int, how many more a table to train on may have.
        first_rows: function of a path, columns and the number of files;
            yields the rows, read without TensorFlow. None, as the functions
            below, if it is read from no files.
        option: str, the option of `kseq check` that says that files hold it;
            "" if they do where no option says anything.
        is_meant: function of the options of `kseq check`, whether it is this
            source of those with the same `option`.
        read_corpus: function of the options of `kseq check`, the file to
            train on and that of `--validation` or None; gives a corpus.
        prepare: function of the options of `kseq prepare`, the tokenizers of
            `--from` or None, and the options of Beam or None; writes a folder
            of prepared data, and returns what is in it.
        trains: str, a recipe that trains from that folder; "" if it is not
            prepared.
        read_examples: function of a model, as in `read_lines`, and of the
            options of `kseq evaluate`; gives examples.
        evaluation: str, what in `kseq.evaluation` scores a model that answers
            it with a text.
        has_tokenizer: bool, whether it is text for a tokenizer.
        types: types of a Python object that is an input; () for any.
        from_python: function of an input as Python has it, for the served
            signature.
        chat_input: function of the turns of a dialogue so far; gives an
            input. None if it is nothing to chat with.
        continues: bool, whether an answer continues it. Then its end counts
            where it is too long, and it may be missing.
        has_sentences: bool, whether its sentences can be answered one by one.
        has_many_answers: bool, whether more than one answer is right, so that
            answers are also drawn.
        names_pictures: bool, whether lines name pictures that are not in it,
            but can be shown.
        is_file: bool, whether it is the bytes of a file.
        bytes_per_step: int, bytes of a row of strings that take about as long
            as one step of a sequence; 0 if all take the same time.
        draw: function of an input, and of the seconds of it that were read if
            it was cut; gives an encoded picture of it; None if it is text.
        page_input: str, the module of the page that reads it.
        page_view: str, the module of the page that shows the text that
            answers it.
    """

    name: str
    preprocessor: str
    item: str
    lines: str
    command_line: str
    python: str
    json: str
    read_lines: Callable[..., Any]
    options: frozenset[str] = frozenset()
    content: str = ""
    prepared: str = ""
    files: str = ""
    task: str = ""
    num_columns: int = 2
    optional_columns: int = 0
    more_columns: int = 0
    first_rows: Callable[..., Any] | None = None
    option: str = ""
    is_meant: Callable[[Any], bool] = lambda options: True
    read_corpus: Callable[..., Any] | None = None
    prepare: Callable[..., Any] | None = None
    trains: str = ""
    read_examples: Callable[..., Any] | None = None
    evaluation: str = "Translations"
    has_tokenizer: bool = False
    types: tuple[type, ...] = ()
    from_python: Callable[[Any], Any] | None = None
    chat_input: Callable[[list[str]], Any] | None = None
    continues: bool = False
    has_sentences: bool = False
    has_many_answers: bool = False
    names_pictures: bool = False
    is_file: bool = False
    bytes_per_step: int = 1
    draw: Callable[[Any], bytes] | None = None
    page_input: str = ""
    page_view: str = "form"
