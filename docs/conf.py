"""How Sphinx builds the site: `make docs`."""

import re
import sys
from itertools import zip_longest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # `studies`
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
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "auto_gallery/*.ipynb"]
html_math_renderer = "mathml"
smartquotes = False  # it would make a dash of the two of an option
myst_enable_extensions = ["attrs_block", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4

autosummary_generate = True
autodoc_typehints = "none"  # docstrings name the types
napoleon_google_docstring = False
napoleon_use_param = False
napoleon_custom_sections = [("Attributes", "params_style")]  # so that "a, b" may share a line, as parameters may
suppress_warnings = ["ref.python"]  # a word of a type that is the name of several attributes
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
    "min_reported_time": 3600,  # running times are those of the machine that built the site
    "show_signature": False,
    "plot_gallery": "True",
    "thumbnail_size": (400, 280),
    "download_all_examples": False,
    "write_computation_times": False,  # its pages load scripts from elsewhere
    "reset_modules": ("matplotlib",),
}

html_theme = "pydata_sphinx_theme"
html_title = f"spinseg {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_favicon = "_static/logo.svg"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"image_light": "_static/logo.svg", "image_dark": "_static/logo.svg", "text": "spinseg", "alt_text": ""},
    "header_links_before_dropdown": 6,
    "show_prev_next": True,
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "faq": [], "why": [], "cite": [], "changelog": []}


def plain(app, what, name, obj, options, lines):
    """Read docstrings as a terminal shows them: `names` are code, and no other sign has a meaning."""
    if what == "property":
        lines.insert(0, "\\")  # else napoleon takes what stands before a colon for a type; the sign itself is not seen
    for i, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            parts = re.split(r"(``[^`]+``|`[^`]+`)", line)
            code = [f"``{part.strip('`')}``" for part in parts[1::2]]
            text = [re.sub(r"([*|])", r"\\\1", part) for part in parts[::2]]
            lines[i] = "".join(a + b for a, b in zip_longest(text, code, fillvalue=""))


def setup(app):
    """Have `plain` see docstrings before their sections are read."""
    app.connect("autodoc-process-docstring", plain, priority=400)
