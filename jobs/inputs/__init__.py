"""Prompt datasets: one reader per file format, one rule for what a row must hold."""
