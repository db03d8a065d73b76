"""Sources and answers as one HTML page that shows attention."""

import bisect
import heapq

from kseq.pictures.document_picture import INK, SHADES
from kseq.pictures.explanation_page import (
    IMAGES,
    escaped,
    explanation_page,
    mark,
    shades,
)
from kseq.pictures.grid_overlay import STYLE, cell_name, grid_overlay
from kseq.pictures.piece_texts import is_end, readable_attention, turn_ends

_NAMED = 3  # source tokens that are named for each token of an answer
_SHADED = 12  # source tokens, at most, that one token of an answer shades
_SPACE, _END = "␣", "end"  # shown for tokens without text

# The token of the answer that is pointed at, or else focused, sets the
# background of the source tokens; `--tN` is the background that the N-th one
# sets.
_STYLE = """
.pair { font: 1.125rem/1.8 Charter, Georgia, serif; margin: .75rem 0 }
.pair p { margin: 0; max-width: none; white-space: pre-wrap }
.pair p, .weights { overflow-wrap: anywhere }
.pair .number { font: .875rem/1.5 system-ui, sans-serif }
.pair b { font-weight: inherit; padding-bottom: .125rem;
  print-color-adjust: exact; -webkit-print-color-adjust: exact }
.pair a { text-decoration-color: var(--rule) }
.pair a:is(:hover, :focus) { background: var(--panel);
  text-decoration-color: currentcolor; outline: 2px solid var(--bar) }
.end { color: var(--muted); font-size: .875em }
.weights { columns: 3 15rem; column-gap: 2rem; margin: 1rem 0 0; padding: 0;
  list-style: none; font-size: .875rem }
.weights li { break-inside: avoid; padding: .125rem .25rem }
.weights li:target { background: var(--panel); outline: 1px solid var(--bar) }
.weights i { color: var(--muted); font-style: normal;
  font-variant-numeric: tabular-nums }
"""
_ABOUT = (
    "the answer that the model gave to each, and the source tokens that it\n"
    "attended to while it wrote the answer."
)
_ABOUT_PICTURES = (
    "the answer that the model gave to each, and where in the picture it\n"
    "looked while it wrote the answer."
)
_POINTING = f"""<p>Point at a token of an answer, or move to it with the Tab
key: the tokens of the source are shaded by their weights, compared with the
largest one for that token.</p>
{shades(lambda level: mark("word", level))}
"""
_POINTING_AT_PICTURES = """<p>Point at a token of an answer, or move to it with
the Tab key: the picture is dark where the weights are small, compared with the
largest one for that token.</p>
"""
_NUMBERS = """<p>The list below an answer has the same in numbers: each token
of the answer and the source tokens with the largest weights. The weights of a
token sum to 100&nbsp;%; with several attention heads they are the mean.</p>
<p><strong>Attention weights are not proofs.</strong> They show where the model
looked, not why it wrote what it wrote.</p>"""


def attention_page(attentions, of_pictures=False):
    """Writes sources and answers as a page.

    Pointing at a token of an answer, or focusing it with the keyboard, shades
    the source tokens by their weights. A list has the largest weights as
    numbers. No script is needed.

    Args:
        attentions: iterable of `kseq.serving.Attention`.
        of_pictures: bool, whether their sources are cells of pictures.

    Returns:
        HTML, str, see `explanation_page`.
    """
    longest = [0]
    articles = (
        _article(attention, number, longest)
        for number, attention in enumerate(attentions, start=1)
    )
    return explanation_page(
        articles,
        unit="picture" if of_pictures else "line",
        about=_ABOUT_PICTURES if of_pictures else _ABOUT,
        legend=attention_legend(of_pictures),
        style=lambda: attention_style(longest[0], of_pictures),
        policy=IMAGES if of_pictures else "",
    )


def attention_legend(of_pictures):
    """How to read `attention_html`, as HTML."""
    return (_POINTING_AT_PICTURES if of_pictures else _POINTING) + _NUMBERS


def attention_style(longest, of_pictures):
    """The CSS rules for `attention_html`.

    Args:
        longest: int, the most tokens of an answer.
        of_pictures: bool, see `attention_page`.
    """
    return _STYLE + (STYLE if of_pictures else "") + _rules(longest)


def attention_html(attention, name):
    """The source and the answer of an attention as HTML.

    Args:
        attention: `kseq.serving.Attention`.
        name: str, unique in the page.

    Returns:
        (str, int), HTML and the number of tokens of the answer.
    """
    weights, sources, targets = readable_attention(
        attention.weights, attention.source_tokens, attention.target_tokens
    )
    picture = None
    if attention.picture is not None:
        picture = grid_overlay(weights, sources, attention.picture)
        sources = list(map(cell_name, sources))
    content = _content(weights, sources, targets, name, picture)
    return content + _cut(attention), len(targets)


def _rules(count):
    """CSS rules for pointing at the first `count` tokens."""
    properties = "\n".join(
        f"  --shade-{level}: linear-gradient({INK}, {INK}) "
        f"0 100%/100% {level}px no-repeat {shade};"
        for level, shade in enumerate(SHADES.values(), start=1)
    )
    # The token that is pointed at wins over the one that is focused.
    rules = "\n".join(
        f".pair:has(.t{number}:{state}) b {{ background: var(--t{number}) }}"
        for state in ("focus", "hover")
        for number in range(1, count + 1)
    )
    return f":root {{\n{properties}\n}}\n{rules}\n"


def _article(attention, number, longest):
    name = f"line-{number}"
    content, tokens = attention_html(attention, name)
    longest[0] = max(longest[0], tokens)
    return f"""<article aria-labelledby="{name}">
<h2 id="{name}"><span class="number">Line {number}</span></h2>
{content}
</article>
"""


def _content(weights, sources, targets, name, picture):
    if all(is_end(token) for token in targets):
        return "<p>The answer is empty.</p>"
    strongest = [_largest(row) for row in weights]
    if picture is None:
        tokens = map(_source_token, sources, _properties(strongest, sources))
        picture = _turns(list(tokens), sources)
    answer = "".join(
        _target_token(token, number, name)
        for number, token in enumerate(targets, start=1)
    )
    items = "\n".join(
        f'<li id="{name}-{number}"><bdi lang="">{_named(token)}</bdi> '
        f"<i>from</i> {_names(row, largest, sources)}"
        f"{_turn_weights(row, sources)}</li>"
        for number, (token, row, largest) in enumerate(
            zip(targets, weights, strongest, strict=True), start=1
        )
    )
    return f"""<div class="pair">
<span class="number">Source</span>
{picture}
<span class="number">Answer</span>
<p dir="auto" lang="">{answer.lstrip()}</p>
</div>
<ul class="weights" aria-label="Weights">
{items}
</ul>"""


def _turns(tokens, sources):
    """A paragraph for each turn; a text is a single turn."""
    ends = turn_ends(sources)
    return "\n".join(
        f'<p dir="auto" lang="">{"".join(tokens[start:end]).lstrip()}</p>'
        for start, end in zip([0, *ends], ends, strict=False)
    )


def _turn_weights(row, sources):
    ends = turn_ends(sources)
    if len(ends) < 2:
        return ""
    weights = [
        sum(row[start:end])
        for start, end in zip([0, *ends], ends, strict=False)
    ]
    return "; turns: " + ", ".join(
        f"{number} <i>{weight:.1%}</i>"
        for number, weight in enumerate(weights, start=1)
    )


def _largest(row):
    """The source tokens with the largest weights: (position, level)."""
    places = heapq.nlargest(_SHADED, range(len(row)), key=row.__getitem__)
    most = row[places[0]] if places else 0
    if most <= 0:
        return []
    levels = [
        bisect.bisect(list(SHADES), row[place] / most) for place in places
    ]
    return [pair for pair in zip(places, levels, strict=True) if pair[1]]


def _properties(strongest, sources):
    """The background of each source token for each token of the answer."""
    properties = [[] for _ in sources]
    for number, pairs in enumerate(strongest, start=1):
        for place, level in pairs:
            properties[place].append(f"--t{number}:var(--shade-{level})")
    return map(";".join, properties)


def _source_token(token, properties):
    def shaded(core):
        return f'<b style="{properties}">{core}</b>' if properties else core

    return _outside_of_spaces(token, shaded)


def _target_token(token, number, name):
    link = f'<a class="t{number}" href="#{name}-{number}">'
    return _outside_of_spaces(token, lambda core: f"{link}{core}</a>")


def _outside_of_spaces(token, element):
    """An element with a token's text; the spaces around it stay outside."""
    if is_end(token):
        return " " + element(f'<span class="end">{_END}</span>')
    core = token.strip(" ") or token
    before, _, after = token.partition(core)
    return f"{before}{element(escaped(core))}{after}"


def _names(row, largest, sources):
    return ", ".join(
        f'<bdi lang="">{_named(sources[place])}</bdi> <i>{row[place]:.1%}</i>'
        for place, _ in largest[:_NAMED]
    )


def _named(token):
    if is_end(token):
        return f'<span class="end">{_END}</span>'
    return escaped(token.strip() or _SPACE)


def _cut(attention):
    if not attention.truncated:
        return ""
    return "\n<p>The line is too long; its end was left out.</p>"
