"""Low-rank adaptation of matrices (LoRA), as an optimizer."""

import math

import keras
from keras import ops

from kseq.user_error import check_integers

_SCALE = 2.0  # alpha / rank


@keras.saving.register_keras_serializable(package="kseq")
class LowRankOptimizer(keras.optimizers.Optimizer):
    """Trains two factors of small rank in place of each matrix.

        W = W_0 + 2 A B,    A (M, R) random and B (R, N) zeros at the start
        dA = 2 dW B',       dB = 2 A' dW

    The factors are variables of this optimizer, and `inner_optimizer` updates
    them; then the change of 2 A B is added to W. So the model has the same
    layers and weights as without LoRA, its state consists of its weights and
    the state of this optimizer, and it starts as the model with W_0.

    The kernel of a convolution is a matrix of N columns, its filters. A matrix
    that is not larger than its factors, and a vector, is updated by
    `inner_optimizer` itself.

    Memory for W and dW stays that of full training; moments and moving
    averages are those of the factors.

    Args:
        inner_optimizer: `keras.optimizers.Optimizer`. Its weight decay and
            moving averages are those of the factors.
        rank: int, R.
        name: str.

    Raises:
        ValueError: if the rank is not positive.

    Example:
        >>> kernel = keras.Variable(np.ones((20, 30)))
        >>> optimizer = LowRankOptimizer(keras.optimizers.Adam(), rank=2)
        >>> optimizer.build([kernel])
        >>> optimizer.apply([np.random.normal(size=(20, 30))], [kernel])
        >>> int(np.linalg.matrix_rank(kernel.numpy() - 1, tol=1e-5))
        2

    Reference:
        Hu et al. 2022, arXiv:2106.09685, section 4.1. Unlike in the paper,
        every matrix of `kseq.training.freeze` is adapted, alpha is 2 R, and
        the sum is kept, not its parts: it has the rounding errors of a sum.
    """

    def __init__(
        self,
        inner_optimizer: keras.optimizers.Optimizer,
        rank: int,
        name: str = "low_rank",
    ):
        check_integers(rank=rank)
        super().__init__(learning_rate=0.0, name=name)
        self.inner_optimizer = inner_optimizer
        self.rank = rank

    def build(self, variables):
        if self.built:
            return
        self._factors = [self._factors_of(variable) for variable in variables]
        self.inner_optimizer.build(self._trained(variables, self._factors))
        super().build(variables)

    def _factors_of(self, variable):
        """A and B, or () where the variable is updated itself."""
        if self.rank > largest_rank(variable.shape):
            return ()
        rows, columns = _as_matrix(variable.shape)
        random = keras.initializers.VarianceScaling(
            1 / 3, mode="fan_in", distribution="uniform"
        )
        name = variable.path.replace("/", "_")
        return (
            self.add_variable(
                (rows, self.rank), random, variable.dtype, name=f"{name}_down"
            ),
            self.add_variable(
                (self.rank, columns), "zeros", variable.dtype, name=f"{name}_up"
            ),
        )

    def _trained(self, given, factors):
        """Variables, or their gradients: those of factors where it has any."""
        return [
            each
            for one, pair in zip(given, factors, strict=True)
            for each in (pair or [one])
        ]

    def apply(self, grads, trainable_variables=None):
        variables = trainable_variables or self._trainable_variables
        if not self.built:
            self.build(variables)
        grads, variables = self._filter_empty_gradients(grads, variables)
        factors = [
            self._factors[self._get_variable_index(each)] for each in variables
        ]
        pairs = [pair for pair in factors if pair]
        before = [_product(*pair) for pair in pairs]
        gradients = [
            _gradients(gradient, *pair) if pair else ()
            for gradient, pair in zip(grads, factors, strict=True)
        ]
        self.inner_optimizer.apply(
            self._trained(grads, gradients), self._trained(variables, factors)
        )
        adapted = [
            v for v, pair in zip(variables, factors, strict=True) if pair
        ]
        changes = [
            ops.reshape(_product(*pair) - old, variable.shape)
            for variable, pair, old in zip(adapted, pairs, before, strict=True)
        ]
        self._backend_update_step(changes, adapted, self._learning_rate)

    def update_step(self, gradient, variable, learning_rate):
        self.assign_add(variable, gradient)  # on the device of the variable

    def finalize_variable_values(self, var_list):
        if not self.inner_optimizer.use_ema:
            return
        averages = iter(self.inner_optimizer._model_variables_moving_average)
        for variable, pair in zip(
            self._trainable_variables, self._factors, strict=True
        ):
            if pair:
                average = _product(next(averages), next(averages))
                change = average - _product(*pair)
                variable.assign_add(ops.reshape(change, variable.shape))
            else:
                variable.assign(next(averages))

    @property
    def variables(self):
        return [*self._variables, *self.inner_optimizer.variables]

    @property
    def iterations(self):
        return self.inner_optimizer.iterations

    @property
    def learning_rate(self):
        return self.inner_optimizer.learning_rate

    @learning_rate.setter
    def learning_rate(self, learning_rate):
        self.inner_optimizer.learning_rate = learning_rate

    def get_config(self) -> dict:
        inner = keras.saving.serialize_keras_object(self.inner_optimizer)
        return {"inner_optimizer": inner, "rank": self.rank, "name": self.name}

    @classmethod
    def from_config(cls, config: dict, custom_objects=None):
        inner = keras.saving.deserialize_keras_object(
            config["inner_optimizer"], custom_objects
        )
        return cls(**{**config, "inner_optimizer": inner})


def largest_rank(shape):
    """The largest rank whose factors are smaller than the matrix; or 0."""
    if len(shape) < 2:
        return 0
    rows, columns = _as_matrix(shape)
    return (rows * columns - 1) // (rows + columns)


def _as_matrix(shape):
    return math.prod(shape[:-1]), shape[-1]


def _product(down, up):
    return _SCALE * ops.matmul(down, up)


def _gradients(gradient, down, up):
    gradient = ops.reshape(gradient, (down.shape[0], -1))
    return (
        _SCALE * ops.matmul(gradient, ops.transpose(up)),
        _SCALE * ops.matmul(ops.transpose(down), gradient),
    )
