"""Diffusion language models as spotbatch sees them: one file per family."""
