"""Explained documents as one HTML page that needs nothing else."""

import heapq
import html
import itertools
import operator
import re

from kseq.pictures.document_picture import (
    INK,
    MUTED,
    SHADES,
    shade_levels,
)

_NAMED = 3  # sentences and words that are named above a document

_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'"
)

# Characters that HTML does not have, and those that would turn around what
# follows them; right-to-left text needs none of these.
_HARMFUL = re.compile(
    "[\0-\x08\x0b\x0e-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufffe\uffff]"
)

# A shade is also a line, so that it is seen without colour; bars are borders,
# which are printed even where backgrounds are not.
_STYLE = """
:root {
  color-scheme: light;
  --ink: %(ink)s; --muted: %(muted)s; --paper: #ffffff; --panel: #f7f4ee;
  --rule: #e3ddd2; --bar: #a8600f;
}
* { box-sizing: border-box }
body {
  margin: 0; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, sans-serif;
}
main { max-width: 54rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem }
h1 { margin: 0; font-size: 2rem; line-height: 1.2; letter-spacing: -.01em }
h2 { margin: 0; font-size: 1.5rem; line-height: 1.25 }
p { margin: .5rem 0; max-width: 44rem }
bdi, .sentence { overflow-wrap: anywhere }
a { color: inherit; text-underline-offset: .15em }
dt, th, .number, .probability {
  color: var(--muted); font-size: .875rem; font-weight: 400;
}
.legend {
  margin: 1.75rem 0 0; padding: 1.25rem 1.5rem; background: var(--panel);
}
.legend h2 { font-size: 1rem }
.legend ul {
  display: flex; flex-wrap: wrap; gap: .5rem 1.75rem;
  margin: .75rem 0; padding: 0; list-style: none;
}
article { margin-top: 3.5rem }
.number { display: block; margin-bottom: .125rem }
.probability { margin-left: .5rem; font-variant-numeric: tabular-nums }
dl {
  display: grid; grid-template-columns: auto 1fr; gap: .25rem 1rem;
  margin: .75rem 0 1.25rem;
}
dd { margin: 0 }
table { width: 100%%; border-collapse: collapse; table-layout: fixed }
th, td {
  padding: .5rem .5rem .5rem 0; vertical-align: baseline; text-align: start;
  border-top: 1px solid var(--rule);
}
th { white-space: nowrap }
thead th { border-top: 0 }
tr > :first-child { width: 3rem }
tr > :nth-child(2) { width: 11.5rem; padding-right: 1.25rem }
tr > :last-child { padding-right: 0 }
tr:target { background: var(--panel) }
.weight {
  display: grid; grid-template-columns: 3.25rem 1fr; gap: .75rem;
  align-items: center; text-align: right;
  font-variant-numeric: tabular-nums;
}
.bar { display: block; border-top: .625rem solid var(--bar); min-width: 1px }
.sentence { font: 1.125rem/1.7 Charter, Georgia, serif; unicode-bidi: isolate }
mark {
  color: inherit; border-bottom: 0 solid var(--ink); padding-top: .125rem;
  box-decoration-break: clone; -webkit-box-decoration-break: clone;
  print-color-adjust: exact; -webkit-print-color-adjust: exact;
}
%(shades)s
@media (max-width: 40rem) {
  main { padding: 1.5rem 1rem 3rem }
  h1 { font-size: 1.625rem }
  dl { display: block }
  dd { margin-bottom: .5rem }
  tr > :first-child { width: 2.25rem }
  tr > :nth-child(2) { width: 4.5rem; padding-right: .75rem }
  .weight { display: block; text-align: start }
  .sentence { font-size: 1rem }
}
@media print {
  main { max-width: none; padding: 0 }
  body { font-size: .875rem }
  .sentence { font-size: .9375rem }
  tr, h2, dl, .legend { break-inside: avoid }
  h2, dl, thead { break-after: avoid }
}
"""


def explanation_page(documents):
    """Writes explained documents as a page.

    Each document has its label and probability, its strongest sentences and
    words by name, and all its sentences, each with its weight as a number and
    as a bar. Words are shaded by their share of the document's attention:
    their weight within the sentence times the weight of the sentence.

    Args:
        documents: iterable of `ExplainedDocument`.

    Returns:
        HTML, str. Nothing in it is a script or refers to another file.
    """
    articles = [
        _article(document, number)
        for number, document in enumerate(documents, start=1)
    ]
    count = f"{len(articles)} document{'s' if len(articles) != 1 else ''}"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Where the model looked: {count}</title>
<style>{_style()}</style>
</head>
<body>
<main>
<h1>Where the model looked</h1>
<p>{count}, the label that the model gave each, and the attention that it paid
to the sentences and words.</p>
{_legend()}
{"".join(articles)}</main>
</body>
</html>
"""


def _style():
    shades = [
        f".shade-{level} {{ background: {shade}; border-width: {level}px }}"
        for level, shade in enumerate(SHADES.values(), start=1)
    ]
    return _STYLE % {
        "ink": INK,
        "muted": MUTED,
        "shades": "\n".join(shades),
    }


def _legend():
    shades = "\n".join(
        f"<li>{_mark('word', level)} {bound:.0%} or more</li>"
        for level, bound in enumerate(SHADES, start=1)
    )
    return f"""<section class="legend" aria-labelledby="legend">
<h2 id="legend">How to read this page</h2>
<p>The weight of a sentence is its share of the attention that the document
got. The longest bar is the strongest sentence.</p>
<p>The weight of a word is its weight within the sentence times the weight of
the sentence. Words are shaded by how near they come to the strongest word of
the document:</p>
<ul>
{shades}
</ul>
<p><strong>Attention weights are not proofs.</strong> They show where the model
looked, not why it decided. To see how much a sentence matters, leave it out
and classify the rest.</p>
</section>"""


def _article(document, number):
    name = f"document-{number}"
    return f"""<article aria-labelledby="{name}">
<h2 id="{name}"><span class="number">Document {number}</span>
<bdi lang="">{_escaped(document.label)}</bdi>
<span class="probability">probability {document.probability:.1%}</span></h2>
{_content(document, name)}
</article>
"""


def _content(document, name):
    if document.is_empty:
        return "<p>The document is empty: no word speaks for this label.</p>"
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


def _strongest_sentences(document, name):
    weights = zip(document.sentence_weights, itertools.count(1))
    return ", ".join(
        f"{_link(name, number)} ({weight:.1%})"
        for weight, number in _largest(weights)
    )


def _strongest_words(document, name):
    sentences = zip(document.word_shares, document.words, strict=True)
    shares = (
        (share, word.strip(), number)
        for number, (shares, words) in enumerate(sentences, start=1)
        for share, word in zip(shares, words, strict=True)
        if word.strip()
    )
    return ", ".join(
        f'<strong><bdi lang="">{_escaped(word)}</bdi></strong> ({share:.1%}, '
        f"{_link(name, number)})"
        for share, word, number in _largest(shares)
    )


def _largest(items):
    """The largest of tuples (weight, ...), if they compare with the first."""
    largest = heapq.nlargest(_NAMED, items, key=operator.itemgetter(0))
    least = min(SHADES) * largest[0][0]
    return [item for item in largest if item[0] >= least]


def _link(name, number):
    return f'<a href="#{name}-sentence-{number}">sentence {number}</a>'


def _marked(words, levels):
    return "".join(map(_mark, words, levels))


def _mark(word, level):
    """A word as HTML; its space stays outside of its shade."""
    core = word.strip()
    if not level or not core:
        return _escaped(word)
    before, _, after = word.partition(core)
    return (
        f'{_escaped(before)}<mark class="shade-{level}">{_escaped(core)}'
        f"</mark>{_escaped(after)}"
    )


def _escaped(text):
    return html.escape(_HARMFUL.sub("\ufffd", text))
