"""Published protocols of evaluation: one runner (:mod:`spit.evaluation.runner`), and a file for each protocol."""
