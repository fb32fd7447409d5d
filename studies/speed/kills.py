"""A checkpointed run that is killed many times: no file is damaged, and the result is that of an uninterrupted run."""

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import spinseg as ss
from studies.speed.problems import superpixels

KILLS, SWEEPS = 200, 240_000


def sampled(path: str, sweeps: int) -> str:
    """Sample, or resume sampling, with checkpoints at `path`; return a digest of the result."""
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
    """Return the number of kills, of undamaged checkpoints, and whether the results are equal."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.npz"
        command = [
            sys.executable,
            "-c",
            "import sys; from studies.speed.kills import sampled; print(sampled(sys.argv[1], int(sys.argv[2])))",
        ]
        undamaged = kills = 0
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
                    ss.Chains.load(path)  # raises an error if it is damaged
                    undamaged += 1
        expected = sampled(str(Path(folder) / "uninterrupted.npz"), SWEEPS)
        leftovers = sum(name.endswith(".partial") for name in os.listdir(folder))
    return {
        "kills": kills,
        "checkpoints found, all undamaged": undamaged,
        "hidden partial files left behind": leftovers,
        "ended like the uninterrupted run": printed.strip() == expected,
    }
