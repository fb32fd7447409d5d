"""The posterior: graph x couplings x likelihood x prior."""
