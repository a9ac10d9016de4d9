"""Committed rows in other forms."""
