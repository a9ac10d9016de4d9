"""Who works next: a pure state machine, events in, instructions out."""
