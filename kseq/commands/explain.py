"""kseq explain: what decided, as a page."""

import sys

from kseq.commands.open_model import is_classifier, open_model
from kseq.commands.read_chunks import read_chunks
from kseq.pictures.explanation_page import explanation_page
from kseq.serving import explained_documents
from kseq.user_error import UserError


def run(options):
    """Reads a document a line, and prints one page with all of them."""
    classifier = open_model(options)
    if not is_classifier(classifier):
        raise UserError(
            f"explain is for classifiers, and {options.path} is a translator: "
            "see predict --json --attention."
        )
    documents = [
        document
        for lines in read_chunks(sys.stdin.fileno(), size=options.batch_size)
        for document in explained_documents(classifier.explain(lines))
    ]
    if not documents:
        raise UserError("there is no document in the input.")
    page = explanation_page(documents)
    sys.stdout.buffer.write(page.encode("utf-8", "replace"))
