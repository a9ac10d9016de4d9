"""Tensor parallelism: one target on several devices of one machine, one process for each."""
