"""Searches over any model that has `encode` and `decode_step`.

`encode(inputs)` returns a state, `decode_step(token_ids, state)` the logits
of the next token and the next state. A state is a dict of nests of tensors,
batch first. Two of its entries have one row per item, whatever the number of
hypotheses: "memory", which no step changes, and "shared", which steps may
change and searches never reorder. Every other entry has one row per hypothesis,
those of an item consecutive; a search reorders them with its hypotheses.
Values that every step needs and no input changes, such as a transposed matrix,
are computed once by `decoding_constants()`, if the model has this method;
`decode_step` finds them in `state["constants"]`, and computes them itself if
there are none.

A constraint is a callable (log_probs (R, V), ids (R, T)) -> (R, V). It takes
the log-probabilities of the next token and the tokens so far, and returns the
log-probabilities that the search reads, with -inf for impossible tokens. If it
only excludes tokens, the score of an answer is still that of the model. If its
attribute `is_row_wise` is True, it treats each row independently, and a search
may leave out the rows of items that are done.

For a coverage penalty a model has `attention_weights`, and its `encode` gives
`state["memory"]["mask"]` (B, S), the mask of the source. At each step the
search adds one more entry to the state, "attention" (R, S): `decode_step`
replaces it by the attention weights of this step, float32.
"""

from kseq.decoding.beam_search import BeamSearch
from kseq.decoding.constraints import (
    ForbiddenTokens,
    ForcedPrefix,
    MinLength,
    NoRepeatedNgrams,
    RepetitionPenalty,
)
from kseq.decoding.ensemble import Ensemble
from kseq.decoding.greedy_search import GreedySearch
from kseq.decoding.hypotheses import Hypotheses, length_limits, sequence_scores
from kseq.decoding.phrases import Phrases
from kseq.decoding.sampling import Sampling

Search = BeamSearch | GreedySearch | Sampling

__all__ = [
    "BeamSearch",
    "Ensemble",
    "ForbiddenTokens",
    "ForcedPrefix",
    "GreedySearch",
    "Hypotheses",
    "MinLength",
    "NoRepeatedNgrams",
    "Phrases",
    "RepetitionPenalty",
    "Sampling",
    "length_limits",
    "sequence_scores",
]
