"""Explained documents as one self-contained HTML page."""

import heapq
import itertools
import operator

from kseq.pictures.document_picture import SHADES, shade_levels, strong_words
from kseq.pictures.explanation_page import (
    escaped,
    explanation_page,
    mark,
    shades,
)

_NAMED = 3  # sentences and words that are named above a document


def document_page(documents):
    """Writes explained documents as a page.

    Each document has its label and probability, its strongest sentences and
    words by name, and all its sentences, each with its weight as a number and
    as a bar. Words are shaded by their share of the document's attention:
    their weight within the sentence times the weight of the sentence.

    Args:
        documents: iterable of `ExplainedDocument`.

    Returns:
        HTML, str, see `explanation_page`.
    """
    return explanation_page(
        map(_article, documents, itertools.count(1)),
        unit="document",
        about="the label that the model gave to each, and the attention that "
        "it paid\nto the sentences and words.",
        legend=_legend(),
    )


def _legend():
    return f"""<p>The weight of a sentence is its share of the attention that
the document got. The longest bar is the strongest sentence.</p>
<p>The weight of a word is its weight within the sentence times the weight of
the sentence. Words are shaded by their weight, compared with that of the
strongest word of the document that has a letter or a digit:</p>
{shades(lambda level: mark("word", level))}
<p><strong>Attention weights are not proofs.</strong> They show where the model
looked, not why it decided. To see how much a sentence matters, leave it out
and classify the rest.</p>"""


def _article(document, number):
    name = f"document-{number}"
    return f"""<article aria-labelledby="{name}">
<h2 id="{name}"><span class="number">Document {number}</span>
<bdi lang="">{escaped(document.label)}</bdi>
<span class="probability">probability {document.probability:.1%}</span></h2>
{_content(document, name)}{_cut(document)}
</article>
"""


def _content(document, name):
    if document.is_empty:
        return (
            "<p>The document is empty: the label is not based on any word.</p>"
        )
    most = max(document.sentence_weights) or 1
    columns = zip(
        document.sentence_weights,
        document.words,
        shade_levels(document),
        strict=True,
    )
    rows = "\n".join(
        f"""<tr id="{name}-sentence-{number}"><th scope="row">{number}</th>
<td><div class="weight">{weight:.1%}
<span class="bar" aria-hidden="true" style="width: {weight / most:.1%}"></span>
</div></td>
<td class="sentence" dir="auto" lang="">{_marked(words, levels)}</td></tr>"""
        for number, (weight, words, levels) in enumerate(columns, start=1)
    )
    return f"""<dl>
<dt>Strongest sentences</dt><dd>{_strongest_sentences(document, name)}</dd>
<dt>Strongest words</dt><dd>{_strongest_words(document, name)}</dd>
</dl>
<table>
<thead><tr><th scope="col">No.</th><th scope="col">Weight</th>
<th scope="col">Sentence</th></tr></thead>
<tbody>
{rows}
</tbody>
</table>"""


def _cut(document):
    if not document.truncated:
        return ""
    return "\n<p>The document is too long; its end was left out.</p>"


def _strongest_sentences(document, name):
    weights = zip(document.sentence_weights, itertools.count(1))
    return ", ".join(
        f"{_link(name, number)} ({weight:.1%})"
        for weight, number in _largest(weights)
    )


def _strongest_words(document, name):
    return ", ".join(
        f'<strong><bdi lang="">{escaped(word.strip())}</bdi></strong> '
        f"({share:.1%}, {_link(name, number)})"
        for share, word, number in _largest(strong_words(document))
    )


def _largest(items):
    """The largest tuples (weight, ...) that are comparable with the first."""
    largest = heapq.nlargest(_NAMED, items, key=operator.itemgetter(0))
    least = min(SHADES) * largest[0][0]
    return [item for item in largest if item[0] >= least]


def _link(name, number):
    return f'<a href="#{name}-sentence-{number}">sentence {number}</a>'


def _marked(words, levels):
    return "".join(map(mark, words, levels))
