"""The data and tokenizers of a run, and the weights that it starts from."""

import fnmatch
import shutil

import keras
import numpy as np
import tensorflow as tf

from kseq.answers import ANSWERS
from kseq.data import (
    DataError,
    PairTokenizers,
    Tokenizer,
    load_pair_tokenizers,
    word_vectors,
)
from kseq.data.files.data_error import ReadError
from kseq.data.files.prepared_folder import is_prepared, prepared_folder
from kseq.data.text.prepare_rows import kept_or_trained
from kseq.devices import from_chief, is_chief
from kseq.files.model_path import run_path
from kseq.runs import RunDirectory, RunError, best_weights
from kseq.runs.checkpoint_files import (
    checkpoint_paths,
    read_weights,
    step_of,
)
from kseq.terminal import escaped_line
from kseq.training.low_rank_optimizer import largest_rank
from kseq.user_error import UserError

# Variables with a row for each item of a list: the end of their path, the axis
# of the rows, and the list. All others are copied as they are.
_ROWS = (
    ("/target_embedding/embeddings", 0, "target"),
    ("/target_embedding/reverse_embeddings", 1, "target"),
    ("embedding/embeddings", 0, "source"),
    ("/logits/bias", 0, "target"),
    ("/ctc_logits/kernel", 1, "target"),
    ("/ctc_logits/bias", 0, "target"),
    ("/classes/kernel", 1, "classes"),
    ("/classes/bias", 0, "classes"),
)
# The same, where embeddings are not tied; other projections have no such rows.
_PROJECTION = (
    ("/projection/kernel", 1, "target"),
    ("/projection/bias", 0, "target"),
)
# Names of the variables that LoRA adapts.
_MATRICES = ("kernel", "recurrent_kernel", "direction")


class FineTuning:
    """Starts a run from the weights and the tokenizer of another run.

    The best weights of the other run are copied. Its tokenizer is kept, or a
    new one is trained; then the embeddings and output weights of shared pieces
    are copied. In the same way a classifier with different labels keeps the
    output weights of shared labels, and a tagger those of shared tags. New
    pieces, labels and tags keep their initial values. Optimizer, schedule and
    moving averages restart.

    Args:
        run: `RunDirectory` of the new run. Once it has a checkpoint of its
            own, nothing is copied or trained on text, and the other run is no
            longer needed.
        start_from: path of the other run; if empty, tokenizers are trained and
            weights stay unchanged.
        new_tokenizer: bool, whether a tokenizer is trained on the new text.

    Raises:
        UserError: if `start_from` is not a run with a checkpoint, or there is
            a `new_tokenizer` without it.
    """

    def __init__(self, run, start_from="", new_tokenizer=False):
        if new_tokenizer and not start_from:
            raise UserError("new_tokenizer needs start_from, a run.")
        self.run = run
        self.start_from = start_from
        self.new_tokenizer = new_tokenizer
        self._has_started = run.kept is not None and bool(
            checkpoint_paths(run.checkpoints / "last")
        )
        self._keeps_tokenizers = self._has_started or (
            bool(start_from) and not new_tokenizer
        )
        self.files = {}  # of the run, for `RunDirectory.save`
        self._other = None
        if start_from and not self._has_started:
            self._other = RunDirectory(run_path(str(start_from)))
            if self._other.path.resolve() == run.path.resolve():
                raise RunError(
                    f"{run.path} cannot start from itself; use a different "
                    "directory."
                )

    def tokenizer(
        self,
        lines,
        vocab_size,
        name="source",
        model_type="bpe",
        verbatim=False,
    ):
        """The tokenizer of the run, of the other run, or one that is trained.

        A run that resumes has its own.

        Args:
            lines: see `Tokenizer.train`; read where one is trained, or to warn
                of characters that one of characters does not have.
            vocab_size: int, of a tokenizer that is trained.
            name: "source" or "target", of the one that is kept.
            model_type: see `Tokenizer.train`.
            verbatim: see `Tokenizer.train`.

        Returns:
            A `Tokenizer`.
        """
        kept = self.kept_tokenizer(name)
        return kept_or_trained(kept, lines, vocab_size, model_type, verbatim)

    def kept_tokenizer(self, name="source"):
        """That of the run that resumes, or of the other run, or None.

        Args:
            name: "source" or "target".
        """
        if not self._keeps_tokenizers:
            return None
        return Tokenizer.load((self._other or self.run).tokenizer(name))

    def pair_tokenizers(self, vocab_size, pieces=("bpe",)):
        """How the tokenizers of source and target are made, or kept.

        A run that resumes has its own.

        Args:
            vocab_size: int, see `kseq.data.PairTokenizers`.
            pieces: see there.

        Returns:
            `kseq.data.PairTokenizers`.
        """
        kept = None
        if self._keeps_tokenizers:
            other = self._other or self.run
            kept = load_pair_tokenizers(
                other.tokenizer("source"), other.tokenizer("target")
            )
        return PairTokenizers(vocab_size, pieces, kept)

    def prepare(self, prepare, train, *given, **options):
        """Prepares the data of the run in its folder, or opens what is there.

        A run that resumes opens its folder, and refuses files that have
        changed. In a new run, what an earlier start has left is used or
        replaced. In a cluster the chief prepares, and the others open.

        Args:
            prepare: `kseq.data.prepare_pairs`, or another such function.
            train: its `train`; a folder that is prepared already is opened,
                wherever it is.
            *given: its arguments after `train`.
            **options: its options.

        Returns:
            What it returns.

        Raises:
            UserError: where it does; on every machine where the chief does.
        """
        if not is_chief():
            if message := from_chief(None):
                raise DataError(message)
            return prepare(self.run.prepared, train, *given, **options)
        try:
            found = self._prepare(prepare, train, *given, **options)
        except UserError as error:
            from_chief(str(error))
            raise
        from_chief(None)
        return found

    def _prepare(self, prepare, train, *given, **options):
        folder, own = prepared_folder(train), self.run.prepared
        is_new = self.run.kept is None and folder is None
        if is_new and train is None:  # a built-in corpus may have no folder
            shutil.rmtree(own, ignore_errors=True)
        may_differ = is_new and is_prepared(own)
        try:
            found = prepare(own, train, *given, **options)
        except ReadError:
            raise  # what is finished is kept
        except DataError:
            if is_new:
                shutil.rmtree(own, ignore_errors=True)
            if not may_differ:
                raise
            return self._prepare(prepare, train, *given, **options)
        self.run.has_prepared = folder is None
        return found

    def initialize_embedding(self, model, config, tokenizer, initial=None):
        """Gives the embedding of a model the vectors of words in a file.

        A run that resumes does not read the file.

        Args:
            model: has an `embedding` with `vectors`, (V, D).
            config: has `vectors`, the path of the file; "" for none.
            tokenizer: see `kseq.data.word_vectors`.
            initial: (V, D) float32, the vectors of all other pieces; None for
                those that the embedding has.

        Raises:
            DataError: see `kseq.data.word_vectors`.
        """
        rows = model.embedding.vectors
        if initial is not None:
            rows.assign(initial)
        path = config.vectors
        if not path or self._has_started:
            return
        vectors, found = word_vectors(path, tokenizer, rows.numpy())
        rows.assign(vectors)
        fact = (
            f"word vectors of {found:,} of {len(vectors):,} pieces from "
            f"{escaped_line(path)}"
        )
        self.files[self.run.vectors.name] = fact.encode()
        if is_chief():
            print(fact, flush=True)

    @property
    def facts(self):
        """Lines about the word vectors of the run, if any, once it is saved."""
        path = self.run.vectors
        return [path.read_text("utf-8", "replace")] if path.is_file() else []

    def initialize(self, served):
        """Copies the weights into a model that has not been trained.

        Args:
            served: `kseq.serving.Generator`, `Classifier` or `Retriever`, of
                the new run.

        Raises:
            RunError: if the models differ in more than the sizes of their
                vocabularies and their labels.
        """
        if self._other is None:
            return
        weights = best_weights(self._other)
        path, values = read_weights(self._other, weights)
        if is_chief():
            print(
                f"Starting from {self._other.path}: {weights!r} weights of "
                f"step {step_of(path)}.",
                flush=True,
            )
        old_config = self._other.read_model()["config"]
        values = _learned(values, old_config.get("ngrams"))
        has_bag = getattr(served.model, "ngrams", 0)
        variables = _learned(served.model.variables, has_bag)
        self._refuse_another_model(served.model, len(values), len(variables))
        items, rows = self._items(served), _ROWS
        if not getattr(served.model, "tie_embeddings", True):
            rows += _PROJECTION
        with served.model.distribute_strategy.scope():
            for variable, value in zip(variables, values, strict=True):
                variable.assign(self._fitted(variable, value, items, rows))

    def _refuse_another_model(self, model, old, new):
        found = self._other.read_model()["class_name"]
        if found != type(model).__name__ or old != new:
            raise RunError(
                f"{self._other.path} holds a {found} of {old} variables; it "
                f"cannot start a {type(model).__name__} of {new}."
            )

    def _items(self, served):
        """For each list: the items of the other run and those of this run."""
        lists = {
            name: (
                _pieces(Tokenizer.load(self._other.tokenizer(name))),
                _pieces(tokenizer),
            )
            for name, tokenizer in served.tokenizers.items()
        }
        for name in filter(None, [answer.classes for answer in ANSWERS]):
            if hasattr(served, name):
                old = self._other.read_task().get(name, [])
                lists["classes"] = list(old), list(getattr(served, name))
        return lists

    def _fitted(self, variable, value, items, rows):
        value = value.numpy()
        axis, name = _axis_and_list(variable.path, rows)
        if name in items:
            old, new = items[name]
            if old != new and value.shape[axis] == len(old):
                return _with_rows(variable, value, axis, old, new)
        if variable.shape != value.shape:
            raise RunError(
                f"{self._other.path} cannot start this model: "
                f"{variable.path} has the shape {value.shape} there and "
                f"{tuple(variable.shape)} here."
            )
        return value


def freeze(model, names, lora=0):
    """Freezes some weights; call it before `compile`.

    Args:
        model: `keras.Model`.
        names: patterns of names, such as "encoder_*". Weights stay if their
            layer, or one that contains it, has such a name.
        lora: int, the rank of a `LowRankOptimizer`: all weights stay that are
            no matrices, or are embeddings; 0 for another optimizer.

    Raises:
        UserError: if a pattern matches no layer, no weight would be trained,
            or the factors would be larger than any matrix.
    """
    weights = [(v, v.path.split("/")) for v in model.trainable_variables]
    for name in names:
        found = [v for v, path in weights if fnmatch.filter(path[:-1], name)]
        if not found:
            layers = ", ".join(dict.fromkeys(path[0] for _, path in weights))
            raise UserError(
                f"--freeze: no layer has the name {name!r}. The model has: "
                f"{layers}"
            )
        for variable in found:
            variable.trainable = False
    if not model.trainable_variables:
        raise UserError("--freeze leaves no weight to train.")
    if lora:
        _keep_matrices(model, lora)


def _keep_matrices(model, rank):
    for variable in model.trainable_variables:
        variable.trainable = variable.name in _MATRICES
    ranks = [largest_rank(each.shape) for each in model.trainable_variables]
    if rank > max(ranks, default=0):
        raise UserError(
            f"--lora: no matrix that is trained is larger than factors of this "
            f"rank; expected at most {max(ranks, default=0)}. Received: {rank}"
        )


def _learned(variables, has_bag):
    """Without seeds, and without a bag of n-grams, which is refitted."""
    kept = [each for each in variables if tf.as_dtype(each.dtype).is_floating]
    return kept[:-2] if has_bag else kept  # those of the last layer


def _pieces(tokenizer):
    return tokenizer.pieces(tf.range(tokenizer.vocab_size)).numpy().tolist()


def _axis_and_list(path, rows):
    for end, axis, name in rows:
        if f"/{path}" == end or path.endswith(end):
            return axis, name
    return None, None


def _with_rows(variable, value, axis, old, new):
    """The variable, with the old rows of the items that both lists have."""
    old_rows = {item: row for row, item in enumerate(old)}
    rows = [row for row, item in enumerate(new) if item in old_rows]
    result = np.array(keras.ops.convert_to_numpy(variable))
    found = [old_rows[new[row]] for row in rows]
    np.moveaxis(result, axis, 0)[rows] = np.moveaxis(value, axis, 0)[found]
    return result
