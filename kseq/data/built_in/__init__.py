from kseq.data.built_in.dates import dates
from kseq.data.built_in.dispatch_reports import dispatch_reports
from kseq.data.built_in.scenes import scenes

__all__ = ["dates", "dispatch_reports", "scenes"]
