from kseq.server.model_store import ModelStore
from kseq.server.rest import rest_app

__all__ = ["ModelStore", "rest_app"]
