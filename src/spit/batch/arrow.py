"""pyarrow, or the error that names its extra."""

from spit.errors import MissingExtra

try:
    import pyarrow as pa
    import pyarrow.dataset as pads
    import pyarrow.fs as pafs
    import pyarrow.parquet as pq
except ImportError as error:
    raise MissingExtra("pyarrow", "cluster", "spit batch") from error

__all__ = ["pa", "pads", "pafs", "pq"]
