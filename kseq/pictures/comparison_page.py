"""Two systems and their answers as one HTML page."""

import difflib
import re

from kseq.pictures.attention_page import (
    attention_html,
    attention_legend,
    attention_style,
)
from kseq.pictures.explanation_page import IMAGES, escaped, explanation_page

_STYLE = """
.summary { display: block; overflow-x: auto; margin: 1.5rem 0 }
.summary caption { text-align: start; color: var(--muted);
  padding-bottom: .25rem }
.summary :is(th, td):nth-child(n) { width: auto; text-align: end;
  padding-right: 1.25rem; white-space: nowrap;
  font-variant-numeric: tabular-nums }
.summary :is(th, td):first-child { text-align: start }
.texts { grid-template-columns: 6rem 1fr }
.texts dd { font: 1.125rem/1.6 Charter, Georgia, serif;
  overflow-wrap: anywhere; white-space: pre-wrap }
.texts mark { background: var(--panel); border-bottom: 2px solid var(--bar) }
details { margin: .75rem 0 }
summary { cursor: pointer; color: var(--muted); font-size: .875rem }
"""
_LEGEND = """<p>Words of one answer that the other one lacks are underlined.
An interval has the true value in it with 95&nbsp;% confidence, for other
examples like these. A p-value is the probability that a difference of this
size appears between two systems that are equally good.</p>
"""


def comparison_page(compared, names, losses, gains, attentions=(None, None)):
    """Writes a comparison as a page: its tables, then lines with both answers.

    Args:
        compared: `kseq.evaluation.Comparison`.
        names: two str, of the systems A and B.
        losses: list of its lines at which B is worse.
        gains: list of those at which B is better.
        attentions: for either system a dict, place of a line -> its
            `kseq.serving.Attention`, or None.

    Returns:
        HTML, str, see `explanation_page`.
    """
    longest = [0]
    articles = [
        _article(line, f"B is {title}", compared, attentions, longest)
        for title, lines in (("worse", losses), ("better", gains))
        for line in lines
    ]
    legend = _LEGEND
    has_attention = any(attentions)
    pictures = any(
        attention.picture is not None
        for found in filter(None, attentions)
        for attention in found.values()
    )
    if has_attention:
        legend += attention_legend(pictures)

    def style():
        rules = attention_style(longest[0], pictures) if has_attention else ""
        return _STYLE + rules

    return explanation_page(
        articles,
        unit="line",
        about=(
            f"of {len(compared):,}, at which the answers of A, "
            f"{escaped(names[0])}, and of B, {escaped(names[1])}, differ most."
        ),
        legend=legend,
        style=style,
        policy=IMAGES if pictures else "",
        title="Is B better than A?",
        summary=_summary(compared),
    )


def _summary(compared):
    sentences = escaped(f"{compared.verdict()} {compared.balance()}")
    signatures = "<br>".join(map(escaped, compared.signatures()))
    return (
        "".join(_table(*table) for table in compared.tables())
        + f"<p>{sentences}</p>\n"
        f'<p class="number">{signatures}</p>\n'
    )


def _table(caption, header, rows):
    head = "".join(f'<th scope="col">{escaped(text)}</th>' for text in header)
    body = "\n".join(
        f'<tr><th scope="row">{escaped(name)}</th>'
        + "".join(f"<td>{escaped(text)}</td>" for text in row)
        + "</tr>"
        for name, *row in rows
    )
    caption = f"<caption>{escaped(caption)}</caption>" if caption else ""
    return (
        f'<table class="summary">{caption}<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table>\n"
    )


def _article(line, title, compared, attentions, longest):
    name = f"line-{line.place + 1}"
    label = escaped(compared.ranked_by.label)
    rows = [("Source", escaped(line.source))]
    rows += [("Reference", escaped(text)) for text in line.references]
    marked = _marked(*line.outputs)
    for system, value, html in zip("AB", line.values, marked, strict=True):
        rows.append((f"{system}, {label} {value:.1f}", html))
    texts = "\n".join(
        f'<dt>{key}</dt><dd dir="auto" lang="">{html}</dd>'
        for key, html in rows
    )
    details = ""
    for system, found in zip("AB", attentions, strict=True):
        if found:
            content, tokens = attention_html(
                found[line.place], f"{name}-{system.lower()}"
            )
            longest[0] = max(longest[0], tokens)
            details += (
                f"<details><summary>Attention of {system}</summary>\n"
                f"{content}\n</details>\n"
            )
    return f"""<article aria-labelledby="{name}">
<h2 id="{name}"><span class="number">Line {line.place + 1}: {title}</span></h2>
<dl class="texts">
{texts}
</dl>
{details}</article>
"""


def _marked(first, second):
    """Two texts as HTML; what one has and the other lacks is marked."""
    # A text without spaces is compared by characters.
    pattern = r"\s*\S+|\s+" if " " in first + second else r"(?s)."
    words = [re.findall(pattern, text) for text in (first, second)]
    matches = difflib.SequenceMatcher(None, *words, autojunk=False)
    parts = ["", ""]
    for kind, *bounds in matches.get_opcodes():
        for number in (0, 1):
            start, end = bounds[2 * number : 2 * number + 2]
            text = "".join(words[number][start:end])
            core = text.lstrip()
            space = escaped(text[: len(text) - len(core)])
            html = escaped(core)
            if core and kind != "equal":
                html = f"<mark>{html}</mark>"
            parts[number] += space + html
    return parts
