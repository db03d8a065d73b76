"""kseq explain: what decided, as a page."""

import sys

from kseq.commands.counted import counted
from kseq.commands.open_predictor import open_predictor
from kseq.commands.read_chunks import read_chunks
from kseq.pictures import explanation_page
from kseq.user_error import UserError


def run(options):
    """Reads a document a line, and prints one page with all of them."""
    predictor = open_predictor(options)
    documents = predictor.explain([])  # a generator refuses before the input
    stdin = sys.stdin.fileno()
    chunks = read_chunks(stdin, size=options.batch_size)
    for lines in counted(chunks, stdin, "Explaining"):
        documents += predictor.explain(lines)
    if not documents:
        raise UserError("there is no document in the input.")
    page = explanation_page(documents)
    sys.stdout.buffer.write(page.encode("utf-8", "replace"))
