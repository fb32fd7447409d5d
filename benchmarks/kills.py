"""A checkpointed run killed again and again: no file is ever damaged, and it ends where an uninterrupted run does."""

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import spinseg as ss
from benchmarks.problems import superpixels

KILLS, SWEEPS = 200, 240_000


def sampled(path: str, sweeps: int) -> str:
    """Sample, or go on sampling, with checkpoints at `path`; a digest of all that comes out."""
    resume = {"resume_from": path} if os.path.exists(path) else {"rng": 3}
    chains = ss.sample(
        superpixels(200),
        sweeps,
        2,
        checkpoint=path,
        checkpoint_seconds=0.05,
        thin=100,
        **resume,
    )
    digest = hashlib.blake2b(digest_size=16)
    for array in (chains.labels, chains.log_posterior, chains.n_clusters, chains.best_labels):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def study() -> dict[str, object]:
    """How often it was killed, how often a checkpoint was there and whole, and whether the end is the same."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.npz"
        command = [
            sys.executable,
            "-c",
            "import sys; from benchmarks.kills import sampled; print(sampled(sys.argv[1], int(sys.argv[2])))",
        ]
        whole = kills = 0
        while True:
            run = subprocess.Popen([*command, str(path), str(SWEEPS)], stdout=subprocess.PIPE, text=True)
            try:
                printed, _ = run.communicate(timeout=rng.uniform(0.6, 1.8) if kills < KILLS else None)
                break
            except subprocess.TimeoutExpired:
                run.kill()
                run.communicate()
                kills += 1
                if path.exists():
                    ss.Chains.load(path)  # refuses what is damaged
                    whole += 1
        expected = sampled(str(Path(folder) / "uninterrupted.npz"), SWEEPS)
        leftovers = sum(name.endswith(".partial") for name in os.listdir(folder))
    return {
        "kills": kills,
        "checkpoints found, all of them whole": whole,
        "hidden partial files left behind": leftovers,
        "ended like the uninterrupted run": printed.strip() == expected,
    }
