"""Images: files, standard form, superpixels, adjacency, features, boundary cues and rendering."""
