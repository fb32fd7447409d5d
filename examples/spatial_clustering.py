"""Noisy samples on a grid: `SpatialClustering` beside estimators of scikit-learn (needs the extra [sklearn]).

    python examples/spatial_clustering.py [FOLDER [SWEEPS]]

makes 1,600 samples with two features, whose four clusters overlap and lie in five places, and draws what each estimator
finds. `AgglomerativeClustering` sees the grid, and is given a number of clusters. `BayesianGaussianMixture` is given a
maximum of ten, and sees the features alone, or the places of the samples as two more.
"""

import sys
import warnings
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw
from scipy import optimize
from sklearn.cluster import AgglomerativeClustering
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import BayesianGaussianMixture

import spinseg as ss
from spinseg.image.render import label_colors, probability_picture

FOLDER, SWEEPS = Path([*sys.argv, "examples-out"][1]), int([*sys.argv, 0, 0][2] or 500)
SIDE, ZOOM = 40, 8  # of the grid in samples, and pixels to a sample
places = np.argwhere(np.ones((SIDE, SIDE))) / SIDE
y, x = places.T
truth = np.where(x + 0.12 * np.sin(7 * y) > 0.5, 1, 0)
truth[y > 0.8] = 2
truth[((y - 0.45) ** 2 + (x - 0.5) ** 2 < 0.04) | ((y - 0.17) ** 2 + (x - 0.15) ** 2 < 0.01)] = 3  # in two places
X = 2.0 * np.array([[0, 0], [1, 0], [0, 1], [1, 1]])[truth] + np.random.default_rng(0).normal(size=(truth.size, 2))
grid = ss.SiteGraph.grid((SIDE, SIDE))

warnings.simplefilter("ignore", ConvergenceWarning)  # the verdict is printed
spatial = ss.SpatialClustering(sweeps=SWEEPS, random_state=0).fit(X, connectivity=grid)
print(f"Mean probability of a label {spatial.probability_.mean():.3f}. {spatial.diagnostics_.verdict}")
joined, mixture = grid.to_sparse(), BayesianGaussianMixture(n_components=10, max_iter=1000, random_state=0)
found = {"truth": truth, "SpatialClustering": spatial.labels_}
for given in (4, 5):
    found[f"Agglomerative (given {given})"] = AgglomerativeClustering(given, connectivity=joined).fit_predict(X)
found["BayesianGaussianMixture"] = mixture.fit_predict(X)
found["the same, with places"] = mixture.fit_predict(np.hstack([X, places * X.std() / places.std()]))
panels = {}
for name, z in found.items():
    z = np.unique(z, return_inverse=True)[1]
    print(f"{name}: {z.max() + 1} clusters, adjusted Rand index {adjusted_rand_score(truth, z):.3f}")
    cluster, kind = optimize.linear_sum_assignment(-np.histogram2d(z, truth, (np.arange(z.max() + 2), np.arange(5)))[0])
    colors = label_colors(z.max() + 5)[4:]
    colors[cluster] = label_colors(4)[kind]  # a cluster has the color of the kind matched to it, or its own
    panels[name] = colors[z]
panels["probability of SpatialClustering"] = probability_picture(spatial.probability_)
draw = ImageDraw.Draw(picture := Image.new("RGB", ((SIDE * ZOOM + 8) * len(panels), SIDE * ZOOM + 28), "white"))
for panel, (name, colors) in enumerate(panels.items()):
    draw.text((left := panel * (SIDE * ZOOM + 8), 4), name, fill="black", font_size=18)
    picture.paste(Image.fromarray(colors.reshape(SIDE, SIDE, 3)).resize((SIDE * ZOOM,) * 2, 0), (left, 28))
FOLDER.mkdir(parents=True, exist_ok=True)
picture.save(FOLDER / "spatial_clustering.png")
print(FOLDER / "spatial_clustering.png")
