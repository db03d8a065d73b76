"""The frame of a page of explanations, a self-contained HTML file."""

import html
import logging
import re

from kseq.pictures.document_picture import INK, MUTED, SHADES

_log = logging.getLogger(__name__)

MOST_ARTICLES = 1000
LARGEST_PAGE = 32_000_000  # characters; a browser shows it in some seconds

IMAGES = "; img-src data:"  # for a policy: encoded in the page itself
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'"
)

# Characters that HTML does not allow, and those that would reverse the text
# after them; right-to-left text needs none of these.
_HARMFUL = re.compile(
    "[\0-\x08\x0b\x0e-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufffe\uffff]"
)

# A shade is also a line, so that it is visible without colour; bars are
# borders, which are printed even if backgrounds are not.
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


def explanation_page(
    articles,
    unit,
    about,
    legend,
    *,
    style=str,
    policy="",
    title="Where the model looked",
    summary="",
):
    """Writes a page with an article for each explanation.

    It ends after 1,000 articles or 32 million characters; a note says so and is
    logged.

    Args:
        articles: iterable of HTML, str.
        unit: str, what an article explains, in the singular.
        about: HTML, str, the rest of the sentence that begins with their
            number.
        legend: HTML, str.
        style: callable, returns CSS rules after the last article is made.
        policy: str, what the content security policy allows besides styles.
        title: HTML, str.
        summary: HTML, str, before the legend.

    Returns:
        HTML, str. Nothing in it is a script or refers to another file.
    """
    shown, cut = _limited(articles)
    count = f"{len(shown):,} {unit}{'s' if len(shown) != 1 else ''}"
    note = ""
    if cut:
        note = (
            f"This page ends here, after the first {count} of the input: a "
            "larger one would be slow. Split the input."
        )
        _log.warning(note)
        note = f"<p>{note}</p>"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}: {count}</title>
<style>{_STYLE % _COLORS}{style()}</style>
</head>
<body>
<main>
<h1>{title}</h1>
<p>{count}, {about}</p>
{summary}<section class="legend" aria-labelledby="legend">
<h2 id="legend">How to read this page</h2>
{legend}
</section>
{"".join(shown)}{note}</main>
</body>
</html>
"""


def shades(line):
    """The four shades of the legend as list items.

    Args:
        line: callable of the number of a shade, returns HTML.
    """
    items = "\n".join(
        f"<li>{line(level)} {bound:.0%} or more</li>"
        for level, bound in enumerate(SHADES, start=1)
    )
    return f"<ul>\n{items}\n</ul>"


def mark(word, level):
    """A word as HTML, shaded; its space stays outside the shade."""
    core = word.strip()
    if not level or not core:
        return escaped(word)
    before, _, after = word.partition(core)
    return (
        f'{escaped(before)}<mark class="shade-{level}">{escaped(core)}'
        f"</mark>{escaped(after)}"
    )


def escaped(text):
    """Text escaped for HTML, without characters that could do harm."""
    return html.escape(_HARMFUL.sub("\ufffd", text))


def _limited(articles):
    """The first articles, as a list, and whether there are more."""
    shown, size = [], 0
    for article in articles:
        if len(shown) == MOST_ARTICLES or (
            shown and size + len(article) > LARGEST_PAGE
        ):
            return shown, True
        shown.append(article)
        size += len(article)
    return shown, False


_COLORS = {
    "ink": INK,
    "muted": MUTED,
    "shades": "\n".join(
        f".shade-{level} {{ background: {shade}; border-width: {level}px }}"
        for level, shade in enumerate(SHADES.values(), start=1)
    ),
}
