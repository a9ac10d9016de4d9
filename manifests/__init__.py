"""What is true about a job: specification, plan, commit records, seals, columns and the store."""
