"""The use of a memory as one self-contained HTML page."""

import base64
import itertools

from kseq.pictures.explanation_page import IMAGES, explanation_page
from kseq.pictures.memory_picture import MOST_STEPS, memory_picture

_LEGEND = """<p>Each picture has one column per step. Below the inputs and the
probabilities of the output bits are the weightings of each head: how much of
each slot of the memory it writes or reads in that step. A dark cell is a
weight near 1; slots that a head never uses are left out, and so are steps
after the first 300.</p>"""


def memory_page(uses):
    """Writes the use of a memory as a page.

    Args:
        uses: iterable of `MemoryUse`.

    Returns:
        HTML, str, see `explanation_page`.
    """
    return explanation_page(
        map(_article, uses, itertools.count(1)),
        unit="sequence",
        about="what the model answered to each, and where it wrote and read\n"
        "in its memory.",
        legend=_LEGEND,
        policy=IMAGES,
    )


def _article(use, number):
    name = f"sequence-{number}"
    return f"""<article aria-labelledby="{name}">
<h2 id="{name}"><span class="number">Sequence {number}</span></h2>
{_picture(use)}
</article>
"""


def _picture(use):
    steps = len(use.inputs)
    if not steps:
        return "<p>The sequence is empty.</p>"
    image = base64.b64encode(memory_picture(*use[:4])).decode()
    return (
        f'<img src="data:image/png;base64,{image}" alt="inputs, outputs and '
        f'weightings of the heads over {min(steps, MOST_STEPS)} steps">'
    )
