"""kseq explain: what decided, as a page."""

import itertools
import os
import sys

from kseq.commands.capabilities import Capabilities
from kseq.commands.open_predictor import open_predictor
from kseq.commands.read_chunks import (
    counted,
    read_chunks,
    standard_input,
    warn_if_cut,
)
from kseq.data.files.media_folder import MediaFolder, read_picture
from kseq.data.files.url_files import copy_urls
from kseq.user_error import UserError

_CHUNK = 32  # lines whose pictures are kept


def run(options):
    """Reads one input per line, and prints one page with all of them."""
    copy_urls(options)
    model = Capabilities(options.path)
    model.check_signature("explain", "explain")
    model.check_options(options)
    inputs_of = model.source.read_lines(model, options)
    folder = _folder(model, options)
    predictor = open_predictor(options)
    predictor.explain([])  # a model without attention refuses before the input
    stdin = standard_input()
    size, is_text = options.batch_size or _CHUNK, model.source.has_tokenizer
    chunks = counted(read_chunks(stdin, size, is_text), stdin, "Explaining")
    explanations = _explanations(predictor, chunks, inputs_of, folder)
    first = next(explanations, None)
    if first is None:
        raise UserError("there is no line in the input.")
    page = predictor.page(itertools.chain([first], explanations))
    sys.stdout.buffer.write(page.encode("utf-8", "replace"))


def _folder(model, options):
    """The pictures whose features are explained, if they are given."""
    if not options.images:
        return None
    if not model.source.names_pictures:
        raise UserError(
            f"--images is for a model that takes features; {model.path} takes "
            f"{model.source.lines}."
        )
    return MediaFolder(options.images, read_picture, "picture")


def _explanations(predictor, chunks, inputs_of, folder):
    """Explains line by line, so that not all of them are kept."""
    number = 0
    for lines in chunks:
        for line, explanation in zip(
            lines, predictor.explain(inputs_of(lines)), strict=True
        ):
            number += 1
            warn_if_cut(number, explanation.truncated, line)
            if folder and line.strip():
                picture = folder(os.fsdecode(line.strip()))
                explanation = explanation._replace(picture=picture)
            yield explanation
