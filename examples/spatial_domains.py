"""Domains of a tissue that is made up, like Visium spots: `cluster_anndata` (needs the extras [anndata] and [sklearn]).

    python examples/spatial_domains.py [FOLDER [SWEEPS]]

makes counts of 200 genes at 1,024 spots on hexagons, in four layers and an island, each of which has 20 marker genes.
It computes 30 principal components, finds domains beside k-means, which is given their number, and draws both.
"""

import sys
from pathlib import Path

import anndata
import numpy as np
from PIL import Image, ImageDraw
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score

import spinseg as ss
from spinseg.image.render import label_colors

FOLDER, SWEEPS = Path([*sys.argv, "examples-out"][1]), int([*sys.argv, 0, 0][2] or 200)
SIDE, N_GENES, ZOOM = 32, 200, 9
rng = np.random.default_rng(1)
row, column = np.divmod(np.arange(SIDE**2), SIDE)
places = np.stack([column + 0.5 * (row % 2), row * 3**0.5 / 2], axis=1)
x, y = places.T / SIDE
truth = np.digitize(y + 0.08 * np.sin(6 * x), [0.22, 0.44, 0.66])
truth[(x - 0.6) ** 2 + (y - 0.4) ** 2 < 0.15**2] = 4
change = np.ones((5, N_GENES))
for domain in change:
    domain[rng.choice(N_GENES, 20, replace=False)] = rng.choice([2.0, 3.0, 0.4], 20)
depth = rng.lognormal(0, 0.3, (truth.size, 1))
rates = rng.gamma(1.0, 1.5, N_GENES) * change[truth] * depth * rng.gamma(5, 1 / 5, (truth.size, N_GENES))
adata = anndata.AnnData(rng.poisson(rates).astype(np.float32), obsm={"spatial": places})

# What scanpy does by sc.pp.normalize_total, sc.pp.log1p and sc.pp.pca:
total = adata.X.sum(axis=1, keepdims=True)
adata.obsm["X_pca"] = PCA(30, random_state=0).fit_transform(np.log1p(adata.X / total * np.median(total)))

ss.cluster_anndata(adata, sweeps=SWEEPS, rng=0)
made = adata.uns["domain"]
print(f"Components that vary in space: {made['inputs']['features']['components']}. {made['verdict']}")
found = {"truth": truth, "cluster_anndata": adata.obs["domain"].cat.codes.to_numpy(int)}
found["k-means, given 5"] = KMeans(5, n_init=5, random_state=0).fit_predict(adata.obsm["X_pca"])
width = (SIDE + 1) * ZOOM
draw = ImageDraw.Draw(picture := Image.new("RGB", (width * len(found), width + 20), "white"))
for panel, (name, z) in enumerate(found.items()):
    print(caption := f"{name}: {z.max() + 1} clusters, adjusted Rand {adjusted_rand_score(truth, z):.3f}")
    draw.text((width * panel + 6, 4), caption, fill="black", font_size=13)
    for (left, top), color in zip(places * ZOOM, label_colors(z.max() + 1)[z], strict=True):
        draw.circle((width * panel + left + ZOOM, top + 28), ZOOM / 2, fill=tuple(color.tolist()))
FOLDER.mkdir(parents=True, exist_ok=True)
picture.save(FOLDER / "spatial_domains.png")
print(FOLDER / "spatial_domains.png")
