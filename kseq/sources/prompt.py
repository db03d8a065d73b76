"""Prompts: the beginnings of running text."""

from kseq import data
from kseq.data.running_text.text_documents import texts_of
from kseq.files.model_path import is_run
from kseq.sources.prepare_file import prepare_file
from kseq.sources.source_type import SourceType
from kseq.sources.text import lines_alone
from kseq.user_error import UserError


def _first_rows(path, columns, num_files):
    return texts_of(path, *columns)


def _read_corpus(options, train, validation):
    return data.read_text_corpus(
        train, validation, *(options.columns or ()), log=False
    )


def _prepare(options, kept, beam):
    return prepare_file(
        *(data.prepare_text, options, kept, beam, "text", *options.columns),
        vocab_size=options.vocab_size,
        tokens=(options.pieces or [None])[0],
    )


def _read_examples(model, options):
    if not is_run(model.path):
        raise UserError(
            f"{model.path} is an export; only a run can be evaluated on text."
        )
    return data.read_texts(options.source, *(options.columns or ()))


PROMPT = SourceType(
    name="prompt",
    preprocessor="PromptPreprocessor",
    item="prompt",
    lines="prompts",
    command_line="< FILE",
    python='["..."]',
    json='["..."]',
    read_lines=lines_alone,
    options=frozenset({"columns"}),
    content="text",
    prepared="text",
    files="file of text",
    task="This is a language model",
    num_columns=1,
    first_rows=_first_rows,
    option="text",
    read_corpus=_read_corpus,
    prepare=_prepare,
    trains="write_text",
    read_examples=_read_examples,
    evaluation="Texts",
    has_tokenizer=True,
    types=(str, bytes),
    continues=True,
    has_many_answers=True,
    page_view="continuation",
)
