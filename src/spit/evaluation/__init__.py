"""How good the parts are, against others in the same run, by published protocols."""
