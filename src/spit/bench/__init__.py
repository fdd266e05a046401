"""What tokens cost: timings of every stage and of whole calls beside timm's, and exactness across devices."""

from spit.bench.check import Check, check_labels
from spit.bench.latency import Latency, Plan, measure_latency
from spit.bench.photos import photo_batch
from spit.bench.stages import Row, Timing, measure_stages, median_ms

__all__ = ["Check", "Latency", "Plan", "Row", "Timing", "check_labels", "measure_latency", "measure_stages",
           "median_ms", "photo_batch"]
