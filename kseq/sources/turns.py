"""The turns of dialogues."""

from collections import Counter
from collections.abc import Iterable

from kseq import data
from kseq.data.dialogues.dialogue_files import dialogues_of_files
from kseq.data.files.records import without_surrogates
from kseq.data.files.tables import beginning
from kseq.files.json_files import are_strings, json_object
from kseq.sources.numbered_lines import numbered_lines
from kseq.sources.prepare_file import prepare_with_bpe
from kseq.sources.source_type import SourceType

_KEY = b'"turns"'  # of a line of JSON


def _read_lines(model, options):
    return numbered_lines(_turns, blank=[b""])


def _turns(line):
    """The turns between tabs, or those of a line of a file for training."""
    if not line.startswith(b"{") or _KEY not in line:
        return line.split(b"\t")
    turns = (json_object(line) or {}).get("turns")
    if not are_strings(turns):
        raise data.DataError(
            "expected turns separated by tabs, or a JSON object with "
            f'"turns", a list of strings; found {beginning(line)}'
        )
    return [without_surrogates(turn).encode() for turn in turns]


def _first_rows(path, columns, num_files):
    return dialogues_of_files(path, Counter())


def _read_corpus(options, train, validation):
    return data.read_dialogue_corpus(train, validation, log=False)


def _prepare(options, kept, beam):
    return prepare_with_bpe(
        *(data.prepare_dialogues, options, kept, beam),
        *("dialogues", "Dialogues"),
    )


def _read_examples(model, options):
    return data.read_dialogues(options.source, model.preprocessor.max_turns)


def _from_python(turns):
    if isinstance(turns, str | bytes):
        return [turns]
    return list(turns) if isinstance(turns, Iterable) else turns


TURNS = SourceType(
    name="turns",
    preprocessor="DialoguePreprocessor",
    item="dialogue",
    lines="the turns of dialogues",
    command_line="< DIALOGUES  # one per line, turns separated by tabs",
    python='[["...", "..."]]',
    json='[["...", "..."]]',
    read_lines=_read_lines,
    options=frozenset({"metrics"}),
    content="dialogues",
    prepared="dialogues",
    files="file of them",
    task="This model answers in dialogues",
    num_columns=0,
    first_rows=_first_rows,
    option="dialogues",
    read_corpus=_read_corpus,
    prepare=_prepare,
    trains="chat",
    read_examples=_read_examples,
    evaluation="dialogue_evaluation",
    has_tokenizer=True,
    from_python=_from_python,
    chat_input=list,
    has_many_answers=True,
    page_view="dialogue",
)
