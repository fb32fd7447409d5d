"""Run one benchmark: `python -m benchmarks NAME [--json]`."""

import argparse
import importlib
import json
import os

STUDIES = (
    "engine",
    "compilation",
    "ddcrp",
    "scaling",
    "pixels",
    "seams",
    "app",
    "large",
    "segment",
    "boundaries",
    "evidence",
    "posterior",
    "ablation",
    "robustness",
    "outlines",
    "volumes",
    "mixing",
    "connected",
    "kills",
    "baselines",
    "domains",
)


def main() -> None:
    """Parse the arguments, run the benchmark and print its figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("study", choices=STUDIES)
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    arguments = parser.parse_args()
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"  # one thread for every method; must be set before NumPy is imported
    figures = importlib.import_module(f"benchmarks.{arguments.study}").study()
    if arguments.json:
        print(json.dumps(figures, indent=2))
    else:
        for name, value in figures.items():
            print(f"{name:42s} {value:.4g}" if isinstance(value, float) else f"{name:42s} {value}")


if __name__ == "__main__":
    main()
