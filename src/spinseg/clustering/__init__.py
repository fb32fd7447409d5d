"""Clusters of samples that have neighbors, as an estimator of scikit-learn."""
