"""Trained models for spit: a folder of weights, prototypes and a card for each."""
