"""Running tasks in processes or on a cluster, writing files that survive a kill, and resuming."""
