"""The paper's data sets: their descriptions, and one loader for all sources."""

from ._catalogue import DATASETS, DataSet, Size
from ._load import LISTING_HEADER, available, listing, load
from ._tidy import Loaded

__all__ = [
    "DATASETS",
    "LISTING_HEADER",
    "DataSet",
    "Loaded",
    "Size",
    "available",
    "listing",
    "load",
]
