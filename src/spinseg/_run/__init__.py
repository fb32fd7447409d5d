"""Running tasks in processes or on a cluster, writing files that survive a kill, and resuming."""

# Read when NumPy and SciPy are loaded: the number of threads of their numerical libraries.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
