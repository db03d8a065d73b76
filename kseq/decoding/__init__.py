"""Searches over any model that has `encode` and `decode_step`.

`encode(source_ids)` gives a state, `decode_step(token_ids, state)` the logits
of the next token and the state after it. A state is a dict of nests of
tensors, batch first. Its entry "memory" is what no step changes: it stays as
`encode` made it, one row an item, however many hypotheses the item has.
Every other entry has one row a hypothesis, those of an item side by side.
"""

from kseq.decoding.beam_search import beam_search
from kseq.decoding.greedy_search import greedy_search
from kseq.decoding.hypotheses import Hypotheses
from kseq.decoding.length_limits import length_limits
from kseq.decoding.sample import sample
from kseq.decoding.sequence_scores import sequence_scores

__all__ = [
    "Hypotheses",
    "beam_search",
    "greedy_search",
    "length_limits",
    "sample",
    "sequence_scores",
]
