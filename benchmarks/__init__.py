"""Measurements on the machine at hand: ratios within one run, since machines are noisy."""
