"""Training of drafters from draft-free trajectories of a target."""
