"""Formulas as MathML, which browsers draw by themselves: MathJax would be a script from elsewhere."""

import re

from docutils.nodes import SkipNode
from latex2mathml.converter import convert

# The name of a function, such as log, that is no base of an index and has no parenthesis after it.
FUNCTION = re.compile(r"(?<!<msub>)(?<!<msup>)(?<!<munder>)(<mi>[a-z]{2,}</mi>)(?!<mo[^>]*>(?:\(|&#x00028;))")


def spaced(formula, display):
    """A formula, with the space after the names of functions that the converter leaves out."""
    return FUNCTION.sub(r'\1<mspace width="0.1667em"/>', convert(formula, display=display))


def inline(translator, node):
    """Write a formula in a line of text."""
    translator.body.append(spaced(node.astext(), "inline"))
    raise SkipNode  # the text of the formula


def block(translator, node):
    """Write a formula on lines of its own."""
    translator.body.append(f'<div class="math">{spaced(node.astext(), "block")}</div>')
    raise SkipNode


def setup(app):
    """Register the renderer under its name."""
    app.add_html_math_renderer("mathml", inline_renderers=(inline, None), block_renderers=(block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
