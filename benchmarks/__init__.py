"""Measurements on the machine at hand: identity first, forwards second, seconds last."""
