"""The text of HTML and XML, and its tags put back into a translation."""

import bisect
import html
import itertools
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

_TAG = re.compile(
    r"<(?P<end>/?)(?P<name>[A-Za-z_][\w:.-]*+)"
    r"""(?:"[^"]*"|'[^']*'|[^'"<>])*+>"""
)
# How comments and elements without markup begin and end.
_OTHERS = tuple(
    (re.compile(begin, re.IGNORECASE), re.compile(end, re.IGNORECASE))
    for begin, end in (
        ("<!--", "-->"),
        (r"<!\[CDATA\[", r"\]\]>"),
        ("<[!?]", ">"),
        (r"<script\b", r"</script\s*+>"),
        (r"<style\b", r"</style\s*+>"),
        (r"<textarea\b", r"</textarea\s*+>"),
    )
)
_PLACEHOLDER = re.compile(
    r"(\{\{[^{}]*\}\}|\$?\{[^{}\s]*\}|%(?:\(\w+\)|\d+\$)?[sd@](?!\w))"
)
# The number of no character, which Python may refuse to read.
_LONG_NUMBER = re.compile("&#[0-9]{1000,};?")
_NOT_TRANSLATED = re.compile(r"""\btranslate\s*=\s*["']?no\b""", re.IGNORECASE)
_NO_TEXT = re.compile("code|kbd|pre|samp|var")
_EMPTY = re.compile(
    "area|base|br|col|embed|hr|img|input|link|meta|param|source|track|wbr"
)
_BLOCK = re.compile(
    "address|article|aside|blockquote|body|br|button|caption|dd|details|dialog|"
    "div|dl|dt|fieldset|figcaption|figure|footer|form|h[1-6]|head|header|hgroup"
    "|hr|html|legend|li|main|menu|nav|ol|optgroup|option|p|pre|section|select|"
    "summary|table|tbody|td|tfoot|th|thead|title|tr|ul"
)
_DEEPEST = 32  # elements in a sentence; tags of others stand alone


class Word(NamedTuple):
    """A word of an answer.

    Args:
        start: int, where it begins in the answer.
        end: int, where it ends.
        source: int, where the word begins in the source that it translates.
    """

    start: int
    end: int
    source: int


class Element(NamedTuple):
    """A part of a text that tags enclose; or a single tag.

    Args:
        start: int, where it begins in the text.
        end: int, where it ends: at its start, of a single tag.
        opening: str, the tag before it, or the single one.
        closing: str, the tag after it, or "".
        inner: tuple of the `Element` in it.
        spaces: whether there is white space before it and after it, of a
            single tag.
    """

    start: int
    end: int
    opening: str
    closing: str = ""
    inner: tuple["Element", ...] = ()
    spaces: tuple[bool, bool] = (False, False)


class MarkedText(NamedTuple):
    """A text, and the elements in it.

    Args:
        text: str, without tags and placeholders; characters stand for
            themselves, not `&amp;` for `&`.
        elements: tuple of `Element`, in their order.
    """

    text: str
    elements: tuple[Element, ...]

    def answered(self, answer: str, words: Sequence[Word]) -> str:
        """An answer to the text with its elements, each once.

        An element encloses the words that translate its own: as many of them
        as follow one another. Tags are nested as they were.
        """
        return _rendered(
            self.elements, answer, words, (0, len(words)), (0, len(answer))
        )


def split_markup(document: str) -> list[str | MarkedText]:
    """The texts of a document, and what is between them.

    A text continues across the tags of elements in it, such as `<b>`. Those of
    HTML that make a block end it, such as `<p>` and `<br>`; so do elements
    whose parent has no text of its own. Comments, `<script>`, `<code>` and
    elements with `translate="no"` are no text.

    Args:
        document: str, HTML or XML; well-formed or not.

    Returns:
        list of str, which stays as it is, and `MarkedText`.

    Example:
        >>> before, text, after = split_markup("<p>A <b>red</b> cat</p>")
        >>> before, text.text, after
        ('<p>', 'A red cat', '</p>')
        >>> words = [Word(0, 3, 6), Word(4, 9, 2)]
        >>> text.answered("chat rouge", [Word(0, 4, 6), Word(5, 10, 2)])
        'chat <b>rouge</b>'
    """
    tokens = _tokens(document)
    parts: list[str | MarkedText] = []
    for is_block, found in itertools.groupby(
        zip(_are_blocks(tokens), tokens, strict=True), lambda pair: pair[0]
    ):
        run = [token for _, token in found]
        parts += [token.raw for token in run] if is_block else _marked(run)
    return [part for part in parts if part]


class _Token(NamedTuple):
    raw: str
    place: int = -1
    name: str = ""  # of a tag
    is_end: bool = False
    is_text: bool = False
    partner: int = -1  # the place of the other tag of an element


def _tokens(document):
    """Tags, texts and what is neither; elements without text are one token."""
    tokens, at = [], 0

    def add(raw, **about):
        if raw:
            tokens.append(_Token(raw, len(tokens), **about))

    for start, end, tag in _found(document):
        add(document[at:start], is_text=True)
        name, is_end = (tag["name"].lower(), tag["end"]) if tag else ("", "")
        add(document[start:end], name=name, is_end=bool(is_end))
        at = end
    add(document[at:], is_text=True)
    partners = _matching_tags(tokens)
    kept, place = [], 0
    while place < len(tokens):
        token = tokens[place]
        last = partners.get(place, -1)
        place += 1
        if last >= place and (
            _NO_TEXT.fullmatch(token.name) or _NOT_TRANSLATED.search(token.raw)
        ):
            raw = "".join(each.raw for each in tokens[token.place : last + 1])
            token, place = token._replace(raw=raw), last + 1
        else:
            token = token._replace(partner=last)
        kept.append(token)
    return kept


def _found(document):
    """Where tags and `_OTHERS` begin and end, and the match of a tag or None.

    In linear time: an end that is not found once is not looked for again.
    """
    at, others = 0, list(_OTHERS)
    while (start := document.find("<", at)) >= 0:
        at, tag = start + 1, None
        for begin, end in tuple(others):
            if found := begin.match(document, start):
                if last := end.search(document, found.end()):
                    break
                others.remove((begin, end))
        else:
            last = tag = _TAG.match(document, start)
        if last:
            at = last.end()
            yield start, at, tag


def _matching_tags(tokens):
    """The places of the other tags of elements."""
    partners, opened, counts = {}, [], Counter()
    for token in tokens:
        is_single = _EMPTY.fullmatch(token.name) or token.raw.endswith("/>")
        if token.name and not token.is_end and not is_single:
            opened.append(token)
            counts[token.name] += 1
        # An end without a beginning leaves those that are open as they are.
        elif token.is_end and counts[token.name]:
            while (last := opened.pop()).name != token.name:
                counts[last.name] -= 1
            counts[token.name] -= 1
            partners |= {token.place: last.place, last.place: token.place}
    return partners


def _are_blocks(tokens):
    """Whether each token ends a text, a list of bool."""
    # The places of elements with text of their own, outside those in them.
    have_text = set()
    parents, opened = [], [-1]
    for token in tokens:
        if token.is_end and token.partner >= 0:
            opened.pop()
        parents.append(opened[-1])
        if token.is_text and not token.raw.isspace():
            have_text.add(opened[-1])
        if token.partner > token.place:
            opened.append(token.place)
    found = {-1: True}  # by place
    for token, parent in zip(tokens, parents, strict=True):
        is_block = found[parent] and parent not in have_text
        is_block |= bool(_BLOCK.fullmatch(token.name))
        found[token.place] = is_block and not token.is_text
    return [found[token.place] for token in tokens]


def _marked(run):
    """What tokens within a text are: a text, and what is around it."""
    plain = "".join(token.raw for token in run if token.is_text)
    plain = _PLACEHOLDER.sub("", _unescaped(plain))
    if not any(map(str.isalnum, plain)):
        return [token.raw for token in run]
    low, high = _without_outer_tags(run)
    marks, text = _marks_and_text(run[low:high])
    stripped = text.strip()
    start = text.index(stripped)
    places = {token.place for token in run[low:high]}
    elements = _nested(marks, places, start, len(stripped))
    # A line break in a text is white space as any other.
    plain = re.sub(r"[\t\r\n]", " ", stripped)
    return [
        *(token.raw for token in run[:low]),
        text[:start],
        MarkedText(plain, elements),
        text[start + len(stripped) :],
        *(token.raw for token in run[high:]),
    ]


def _unescaped(text):
    return html.unescape(_LONG_NUMBER.sub("\ufffd", text))


def _without_outer_tags(run):
    """The tokens of a run from its first word, or the tag around it, on."""
    shown = [n for n, t in enumerate(run) if t.is_text and not t.raw.isspace()]
    low, high = 0, len(run)
    while low < shown[0] and not (
        run[shown[0]].place < run[low].partner <= run[-1].place
    ):
        low += 1
    while high - 1 > shown[-1] and not (
        run[low].place <= run[high - 1].partner < run[shown[-1]].place
    ):
        high -= 1
    return low, high


def _marks_and_text(run):
    """The text of tokens, and the tags and placeholders in it."""
    text, marks, was_mark = "", [], False
    for token in run:
        # Texts and placeholders in turn.
        parts = _PLACEHOLDER.split(token.raw) if token.is_text else ["", token]
        for number, part in enumerate(parts):
            if number % 2:
                mark = part if part is token else _Token(part)
                is_after = not was_mark and text[-1:].isspace()
                marks.append((len(text), mark, is_after, False))
                was_mark = True
            elif part:
                part = _unescaped(part)
                if was_mark and part[0].isspace():
                    marks[-1] = (*marks[-1][:3], True)
                    # The white space before a single tag and after it is one.
                    part = part[not text or text[-1].isspace() :]
                text += part
                was_mark = False
    return marks, text.rstrip() if was_mark else text


def _nested(marks, places, left, size):
    """The elements of a text, which begins at `left` and has `size` characters.

    Marks are tags and placeholders: (place in the text, token, is after white
    space, is before it).
    """
    opened = [(_Token(""), 0, False, [])]
    for place, token, is_after, is_before in marks:
        at = min(max(place - left, 0), size)
        begins = token.partner > token.place and token.partner in places
        if begins and len(opened) <= _DEEPEST:
            opened.append((token, at, is_after, []))
            continue
        opening, start, was_after, inner = opened[-1]
        spaces = is_after, is_before
        found = Element(at, at, token.raw, spaces=spaces)
        if 0 <= token.partner == opening.place:
            opened.pop()
            found = Element(start, at, opening.raw, token.raw, tuple(inner))
            if start == at:
                found = found._replace(spaces=(was_after, is_before))
        opened[-1][-1].append(found)
    return tuple(opened[0][-1])


def _rendered(elements, answer, words, between, span):
    """A part of an answer, escaped, with elements.

    It has the words `between`, (first, last + 1), and this span of the answer.
    """
    (low, high), (at, end) = between, span
    spans = _spans(elements, words, low, high)
    parts = []
    for (first, last), element in sorted(
        zip(spans, elements, strict=True),
        key=lambda found: (found[0][0], found[0][0] < found[0][1]),
    ):
        start = words[first].start if first < high else end
        # Directly after the word before, as in the source.
        if first == high or element.spaces == (False, True):
            start = words[first - 1].end if first > low else start
        start = max(start, at)
        stop = words[last - 1].end if first < last else start
        before, after = element.spaces
        before &= start > 0 and not answer[start - 1].isspace()
        after &= start < len(answer) and not answer[start].isspace()
        inside = _rendered(
            element.inner, answer, words, (first, last), (start, stop)
        )
        parts += [
            html.escape(answer[at:start], quote=False),
            f"{' ' * before}{element.opening}",
            f"{inside}{element.closing}{' ' * after}",
        ]
        at = stop
    return "".join([*parts, html.escape(answer[at:end], quote=False)])


def _spans(elements, words, low, high):
    """The words that each element encloses, (first, last + 1)."""
    enclosing = [n for n, each in enumerate(elements) if each.end > each.start]
    starts = [elements[number].start for number in enclosing]

    def owner(word):
        found = bisect.bisect_right(starts, word.source) - 1
        number = enclosing[found] if found >= 0 else None
        is_in = number is not None and word.source < elements[number].end
        return number if is_in else None

    runs = _runs(map(owner, words[low:high]))
    ordered = sorted((first, last, n) for n, (first, last) in runs.items())
    sources = sorted(
        (word.source, place) for place, word in enumerate(words[low:high])
    )
    spans = []
    for number, element in enumerate(elements):
        if number in runs:
            first, last = runs[number]
            spans.append((low + first, low + last))
            continue
        # Before the word whose source follows the element's.
        after = bisect.bisect_left(sources, (element.start,))
        place = sources[after][1] if after < len(sources) else high - low
        before = bisect.bisect_left(ordered, (place,)) - 1
        if before >= 0:
            first, last, other = ordered[before]
            if place < last:
                place = first if number < other else last
        spans.append((low + place, low + place))
    return spans


def _runs(owners):
    """The words that elements enclose: most of their own, few of others.

    Owners are the elements of words, or None. Gives a dict, element ->
    (first, last + 1).
    """
    best, current, start, value = {}, None, 0, 0
    for place, owner in enumerate(owners):
        if owner is None:
            value -= 1
            continue
        if owner != current or value < 0:
            current, start, value = owner, place, 0
        value += 1
        run = value, place - start, start, place + 1
        best[owner] = max(best.get(owner, run), run)
    return {owner: run[2:] for owner, run in best.items()}
