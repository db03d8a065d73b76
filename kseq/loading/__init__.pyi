# ruff: noqa: I001  # the names of a module stay in one statement
from .load import load as load
from .load_export import load_export as load_export
from .load_run import load_model as load_model, load_run as load_run
from .predict_lines import PredictLines as PredictLines
