"""The explorer's page and a small HTTP service, on top of :class:`spit.Predictor`."""
