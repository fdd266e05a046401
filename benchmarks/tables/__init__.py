"""Tables of the paper that ``table.py`` prints: its protocols, and what only they measure."""
