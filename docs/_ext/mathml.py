"""Formulas as MathML, which browsers draw by themselves: MathJax would be a script from elsewhere."""

from docutils.nodes import SkipNode
from latex2mathml.converter import convert


def inline(translator, node):
    """Write a formula in a line of text."""
    translator.body.append(convert(node.astext(), display="inline"))
    raise SkipNode  # the text of the formula


def block(translator, node):
    """Write a formula on lines of its own."""
    translator.body.append(f'<div class="math">{convert(node.astext(), display="block")}</div>')
    raise SkipNode


def setup(app):
    """Register the renderer under its name."""
    app.add_html_math_renderer("mathml", inline_renderers=(inline, None), block_renderers=(block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
