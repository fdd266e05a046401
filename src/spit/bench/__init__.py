"""What tokens cost: timings of every stage beside timm's, exactness across devices, growth with size."""

from spit.bench.check import Check, check_labels
from spit.bench.photos import photo_batch
from spit.bench.scaling import measure_scaling
from spit.bench.stages import Row, Setup, measure_stages
from spit.bench.timing import median_ms

__all__ = ["Check", "Row", "Setup", "check_labels", "measure_scaling", "measure_stages", "median_ms", "photo_batch"]
