"""Answers the text of HTML and XML, and puts the tags back by attention."""

import bisect
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from kseq.data.files.records import without_surrogates
from kseq.data.text.markup import Word, split_markup
from kseq.serving.attention import Attention
from kseq.serving.predict_batches import Progress

if TYPE_CHECKING:
    from kseq.serving.generator_predictor import GeneratorPredictor

# Words and marks; a character of Chinese or Japanese is a word.
_WORD = re.compile(
    r"[\u2e80-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
    r"|(?:(?![\u2e80-\u9fff\uf900-\ufaff])\w)+|[^\w\s]"
)


def answer_markup(
    predictor: "GeneratorPredictor",
    documents: Sequence[str],
    progress: Progress | None = None,
    cut: Callable[[str], object] = lambda sentence: None,
) -> list[str]:
    """See `GeneratorPredictor.markup`."""
    split = [split_markup(_decoded(document)) for document in documents]
    marked = [part for parts in split for part in _marked_texts(parts)]
    answered: Iterator[str] = iter(
        _answered(predictor, marked, progress, cut) if marked else []
    )
    return [
        "".join(
            part if isinstance(part, str) else next(answered) for part in parts
        )
        for parts in split
    ]


def count_sentences(document: str) -> int:
    """How many sentences of a document are answered."""
    marked = _marked_texts(split_markup(document))
    return len(_sentences(marked).sentences) if marked else 0


def _marked_texts(parts):
    return [part for part in parts if not isinstance(part, str)]


def _sentences(marked):
    """The `Paragraphs` of some `MarkedText`."""
    from kseq.data import split_paragraphs  # imports tensorflow_text

    return split_paragraphs([_encoded(each.text) for each in marked])


def _answered(predictor, marked, progress, cut) -> list[str]:
    """The answers to some `MarkedText`, with their elements."""
    texts = [each.text for each in marked]
    found = _sentences(marked)
    sentences = [each.decode() for each in found.sentences.numpy()]
    owners = found.text.numpy().tolist()
    starts = _places(sentences, owners, texts)
    # The attention of sentences in which there are tags, not only around them.
    tags = [sorted(_tag_places(each.elements)) for each in marked]
    have_tags = [
        _is_between(tags[owner], start, start + len(sentence))
        for sentence, owner, start in zip(
            sentences, owners, starts, strict=True
        )
    ]
    answers = _answers(predictor, sentences, have_tags, progress)
    for sentence, answer in zip(sentences, answers, strict=True):
        if answer.truncated:
            cut(sentence)
    outputs = [answer.hypotheses[0].text for answer in answers]
    joined = found.joined(list(map(_encoded, outputs))).numpy()
    joined = [text.decode() for text in joined]

    words: list[list[Word]] = [[] for _ in marked]
    for sentence, answer, output, owner, start, begins in zip(
        *(sentences, answers, outputs, owners, starts),
        _places(outputs, owners, joined),
        strict=True,
    ):
        own = [Word(0, len(output), 0)] if output else []
        if answer.explanation is not None:
            own = aligned_words(sentence, output, answer.explanation)
        words[owner] += [
            Word(word.start + begins, word.end + begins, word.source + start)
            for word in own
        ]
    return [
        each.answered(answer, of_answer)
        for each, answer, of_answer in zip(marked, joined, words, strict=True)
    ]


def _answers(predictor, sentences, are_explained, progress):
    """The answers to sentences, some of them with their attention."""
    found = {}
    for attention in (False, True):
        chosen = np.flatnonzero(np.equal(are_explained, attention)).tolist()
        answers = predictor.answers(
            [sentences[number] for number in chosen],
            attention=attention,
            progress=progress,
        )
        found |= zip(chosen, answers, strict=True)
    return [found[number] for number in range(len(sentences))]


def aligned_words(
    sentence: str, answer: str, attention: Attention
) -> list[Word]:
    """The words of an answer, each with that of the sentence it looks at most.

    Args:
        sentence: str.
        answer: str.
        attention: of the answer to the sentence.

    Returns:
        list of `Word`; empty if there is nothing to align.
    """
    from kseq.pictures.piece_texts import is_end, readable_attention

    weights, *sides = readable_attention(
        attention.weights, attention.source_tokens, attention.target_tokens
    )
    spans, owners = [], []
    for text, tokens, axis in zip(
        (sentence, answer), sides, (1, 0), strict=True
    ):
        kept = [n for n, token in enumerate(tokens) if not is_end(token)]
        weights = np.take(weights, kept, axis)
        spans.append([found.span() for found in _WORD.finditer(text)])
        begins = [start for start, _ in spans[-1]]
        owners.append(
            [
                max(bisect.bisect_right(begins, middle) - 1, 0)
                for middle in _token_centers(text, [tokens[n] for n in kept])
            ]
        )
    if not (weights.size and all(spans)):
        return [Word(0, len(answer), 0)] if answer else []
    of_words = np.zeros((len(spans[1]), len(spans[0])))
    rows, columns = np.array(owners[1]), np.array(owners[0])
    np.add.at(of_words, (rows[:, None], columns[None]), weights)
    # A word without a piece of its own belongs to the one before it.
    has_row = np.isin(np.arange(len(of_words)), rows)
    row = np.maximum.accumulate(np.where(has_row, np.arange(len(of_words)), 0))
    best = of_words.argmax(axis=1)[row]
    return [
        Word(*span, spans[0][source][0])
        for span, source in zip(spans[1], best.tolist(), strict=True)
    ]


def _token_centers(text, tokens):
    """Where the middle of each token is in a text.

    The tokens are of the text after normalization, which may change the
    lengths of words a little, or of its beginning.
    """
    places = np.flatnonzero([not c.isspace() for c in text])
    words, normal = text.split(), "".join(tokens).split()
    if not (words and normal):
        return [0] * len(tokens)
    if len(words) != len(normal):
        words, normal = ["".join(words)], ["".join(normal)]
        if words[0].startswith(normal[0]):
            words = normal
    starts = np.cumsum([0, *map(len, words)])
    # Where each character of the tokens is, white space left out.
    characters = np.concatenate(
        [
            start + (np.arange(len(own)) + 0.5) * len(word) / len(own)
            for start, word, own in zip(starts, words, normal, strict=False)
        ]
    )
    sizes = np.array([len("".join(token.split())) for token in tokens])
    middles = np.cumsum(sizes) - (sizes + 1) // 2
    characters = characters[np.minimum(middles, len(characters) - 1)]
    return places[characters.astype(int)].tolist()


def _places(parts, owners, texts):
    """Where each part is in the text that it belongs to; in their order."""
    found, ends = [], [0] * len(texts)
    for part, owner in zip(parts, owners, strict=True):
        start = texts[owner].find(part, ends[owner])
        found.append(max(start, ends[owner]))
        ends[owner] = found[-1] + len(part)
    return found


def _tag_places(elements) -> Iterator[int]:
    """Where the tags of elements are in a text."""
    for each in elements:
        yield from (each.start, each.end)
        yield from _tag_places(each.inner)


def _is_between(places, start, end):
    """Whether any of some places, which are sorted, is within others."""
    number = bisect.bisect_right(places, start)
    return number < len(places) and places[number] < end


def _decoded(text):
    if isinstance(text, str):
        return without_surrogates(text)
    return text.decode("utf-8", "replace")


def _encoded(text):
    return text.encode("utf-8", "replace")
