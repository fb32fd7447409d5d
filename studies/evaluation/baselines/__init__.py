"""Methods to compare with: label image out, as ours."""
