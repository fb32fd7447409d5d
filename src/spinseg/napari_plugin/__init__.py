"""A plugin for napari: a panel that segments image layers, a reader of saved results, and sample pictures.

napari finds it by `napari.yaml`. Only `widget` needs napari and Qt: all other modules exchange layers with it as tuples
of data, attributes and kind.
"""
