"""How Sphinx builds the site: `make docs`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

import spinseg

project = "spinseg"
author = "The spinseg developers"
copyright = "2026, the spinseg developers"
version = release = spinseg.__version__

extensions = [
    "mathml",
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "auto_gallery/*.ipynb"]
html_math_renderer = "mathml"
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4

autosummary_generate = True
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
napoleon_google_docstring = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "auto_gallery",
    "subsection_order": [
        f"../examples/gallery/{name}" for name in ("photographs", "priors", "inference", "graphs", "paper")
    ],
    "filename_pattern": r"/plot_",
    "abort_on_example_error": True,
    "capture_repr": ("_repr_html_",),  # and not what Matplotlib returns
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "plot_gallery": "True",
    "thumbnail_size": (400, 280),
    "download_all_examples": False,
    "reset_modules": ("matplotlib",),
}

html_theme = "pydata_sphinx_theme"
html_title = f"spinseg {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "show_prev_next": True,
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "default",
    "pygments_dark_style": "github-dark",
}
html_sidebars = {"index": [], "faq": [], "cite": [], "changelog": []}
