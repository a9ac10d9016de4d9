"""Drafters: they propose hypothetical block states, and nothing they propose can bias an output."""
