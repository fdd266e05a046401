"""What tokens cost: timings of every stage, and exactness across devices."""

from spit.bench.check import Check, check_labels
from spit.bench.photos import photo_batch
from spit.bench.stages import Row, Timing, measure_network, measure_stages, median_ms

__all__ = ["Check", "Row", "Timing", "check_labels", "measure_network", "measure_stages", "median_ms", "photo_batch"]
