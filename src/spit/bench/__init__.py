"""What tokens cost: timings of every stage, and exactness across devices."""

from spit.lazy import lazily

__getattr__ = lazily(__name__, {
    "check": ["Check", "check_labels"],
    "options": ["Timing"],
    "photos": ["photo_batch"],
    "stages": ["Row", "measure_network", "measure_stages", "median_ms"],
})
