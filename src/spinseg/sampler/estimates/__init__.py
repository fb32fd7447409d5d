"""Point estimates and summaries of draws of partitions."""
