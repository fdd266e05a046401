"""The comparison of superpixel methods at equal counts of regions that ``superpixels.py`` runs."""
