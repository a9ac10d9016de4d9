"""The engine under load: every policy at every concurrency, on wall and simulated clocks."""
