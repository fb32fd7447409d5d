"""Questions that are asked again when the model changes: ablations, mixing, robustness."""
