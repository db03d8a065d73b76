"""kseq chat: a dialogue with a model, in the terminal."""

import collections
import os
import random
import sys

from kseq.command_line.search_options import (
    CHAT_SAMPLING,
    chooses_search,
    given_search,
)
from kseq.commands.capabilities import Capabilities
from kseq.commands.open_predictor import open_predictor
from kseq.commands.read_chunks import read_chunks, standard_input
from kseq.files.model_path import is_run
from kseq.terminal import single_line
from kseq.user_error import UserError

_REMEMBERED = 100  # turns; a model reads fewer
_RESET = "/reset"
_NOTE = f"{_RESET} clears the conversation; Ctrl-D exits."


def run(options):
    """Answers each line of the input, given the turns before it."""
    model = Capabilities(options.path)
    chat_input = model.answer.chats and model.source.chat_input
    if not chat_input:
        raise UserError(
            f"chat needs a dialogue model; {options.path} is not one."
        )
    _choose_sampling(options, model)
    predictor = open_predictor(options)
    turns = collections.deque(maxlen=_REMEMBERED)
    for line in _lines():
        said = " ".join(line.decode("utf-8", "replace").split())
        if said == _RESET:
            turns.clear()
        if not said or said == _RESET:
            continue
        turns.append(said)
        answer = ""
        for part in predictor.stream(chat_input(turns)):
            answer += part
            print(single_line(part), end="", flush=True)
        print(flush=True)
        turns.append(single_line(answer))


def _choose_sampling(options, model):
    """Samples, unless another search is chosen or an export cannot.

    Options of sampling are refused later where the model cannot.
    """
    if chooses_search(options):
        return
    answers_from_a_list = "search" not in model.task
    can = is_run(options.path) or "sample" in model.signatures
    if (not can or answers_from_a_list) and not given_search(options):
        return
    options.sample = True
    for name, value in CHAT_SAMPLING.items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(2**31)


def _lines():
    """Lines as they are typed, or of a file or pipe."""
    descriptor = standard_input()
    if not os.isatty(descriptor):
        for lines in read_chunks(descriptor, size=1):
            yield from lines
        return
    sys.stdin.reconfigure(errors="replace")
    print(_NOTE, file=sys.stderr)
    while True:
        try:
            yield input("> ").encode("utf-8", "replace")
        except EOFError:
            print(file=sys.stderr)
            return
