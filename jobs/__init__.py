"""What a person touches: job files, inputs, planning, the driver, commands and reports."""
