"""The check of the site's pages, which is fed bad ones."""

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "check_site.py"
PROPERTY = '<dl class="py property"><dt class="sig sig-object py" id="a.b">b</dt><dd><p>{}</p></dd></dl>'
FUNCTION = '<dl class="py function"><dt class="sig" id="a.f">f(x)</dt><dd><dl class="field-list">{}</dl></dd></dl>'
CLASS = '<dl class="py class"><dt class="sig" id="a.C">C</dt><dd>{}</dd></dl>'
TYPE = '<dl class="field-list"><dt class="field-odd">Type<span class="colon">:</span></dt><dd>the regions</dd></dl>'
PARAMETERS = "<dt>Parameters<span>:</span></dt><dd><p>x (int)</p></dd>"
RETURNS = "<dt>Returns<span>:</span></dt><dd><p>int</p></dd>"

GOOD = [
    '<a href="https://example.org">elsewhere</a>',
    '<math><mi>log</mi><mspace width="0.1667em"/><mi>p</mi><msub><mi>log</mi><mn>2</mn></msub><mi>x</mi></math>',
    PROPERTY.format("The regions: a table"),
    FUNCTION.format(PARAMETERS + RETURNS),
    CLASS.format(PARAMETERS) + CLASS.format("<p>model, chains -- The posterior</p><p>a ((n,) int32) -- Labels</p>"),
    f'<div class="{"sphx-glr-script-out highlight-none"}"><pre>{"x" * 73}</pre></div>',
    CLASS.format("<pre>&gt;&gt;&gt; import numpy as np\n&gt;&gt;&gt; a = np.ones(2)\n&gt;&gt;&gt; a\narray</pre>"),
]
BAD = [
    ('<img src="https://example.org/a.png">', "loads https://example.org/a.png"),
    (PROPERTY.format(f"a table{TYPE}"), "a.b: what stands before a colon became a type"),
    (CLASS.format("<li><p>chains (model,) -- The posterior</p></li>"), "a.C: names of attributes became types"),
    (CLASS.format("<dl><dt>Variables:</dt></dl>"), "a.C: names of attributes became types"),
    (CLASS.format("<pre>&gt;&gt;&gt; np.ones(2)</pre>"), "a.C: the example does not define np"),
    (FUNCTION.format(PARAMETERS), "a.f: parameters, but no returns"),
    ("<math><mi>log</mi><mi>p</mi></math>", "no space after log in a formula"),
    (f'<div class="highlight-python"><pre>{"x" * 73}</pre></div>', f"wider than 72 columns: {'x' * 73}"),
]


@pytest.fixture(scope="module")
def check():
    spec = importlib.util.spec_from_file_location("check_site", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_good_pages_pass(check, tmp_path, capsys):
    (tmp_path / "good.html").write_text("".join(GOOD))
    assert check.main(tmp_path) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "1 pages and style sheets, 0 faults"


@pytest.mark.parametrize(("page", "fault"), BAD)
def test_each_fault_is_found_and_named(check, page, fault, tmp_path, capsys):
    (tmp_path / "bad.html").write_text("".join(GOOD) + page)
    assert check.main(tmp_path) == 1
    assert capsys.readouterr().out.splitlines()[0] == f"bad.html: {fault}"


def test_a_site_without_pages_is_no_site(check, tmp_path):
    assert check.main(tmp_path) == 1
