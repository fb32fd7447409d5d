"""Networks that see boundaries: what the runtime computes, windows and sizes, and files that are no such network."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, save
from PIL import Image

import spinseg as ss
from spinseg.image.boundary import network
from spinseg.image.boundary.log_odds import BoundaryEvidence
from spinseg.image.boundary.network import BoundaryNetwork
from spinseg.image.picture import as_picture


def write_network(path, nodes=(), name="image", kind=TensorProto.FLOAT, channels=3, output="boundary", n_outputs=2):
    """Write a network whose log-odds are the first two channels, unless other nodes are given."""
    sides = ["height", "width"]
    image = helper.make_tensor_value_info(name, kind, [1, channels, *sides])
    found = helper.make_tensor_value_info(output, TensorProto.FLOAT, [1, n_outputs, *sides])
    bounds = [
        helper.make_tensor(n, TensorProto.INT64, [1], [v]) for n, v in (("start", 0), ("end", n_outputs), ("axis", 1))
    ]
    nodes = list(nodes) or [helper.make_node("Slice", [name, "start", "end", "axis"], [output])]
    graph = helper.make_graph(nodes, "network", [image], [found], bounds)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return str(path)


def test_any_network_of_this_form_gives_evidence(tmp_path):
    """One whose log-odds are the first two channels: an image whose red channel is bright along a line."""
    mine = write_network(tmp_path / "mine.onnx")
    image = np.random.default_rng(0).random((40, 60, 3)).astype(np.float32)
    found = BoundaryNetwork(mine).log_odds(image)
    np.testing.assert_array_equal(found, np.moveaxis(image[..., :2], -1, 0))
    again = pickle.loads(pickle.dumps(BoundaryNetwork(mine)))
    np.testing.assert_array_equal(again.log_odds(image), found)
    preset = ss.Photo(evidence=BoundaryEvidence(network=mine))
    assert mine in repr(preset)
    line = np.zeros((48, 64, 3), np.uint8)
    line[:, 32, 0] = 255
    other = write_network(
        tmp_path / "other.onnx",
        [
            helper.make_node("Mul", ["image", "image"], ["square"]),
            helper.make_node("Slice", ["square", "start", "end", "axis"], ["boundary"]),
        ],
    )
    maps = [BoundaryEvidence(network=path).maps(as_picture(line)).network for path in (mine, other)]
    assert maps[0][0, 20, 32] == maps[0].max() == 1 and np.array_equal(*maps)
    assert ss.segment(line, preset, sweeps=20, rng=0).labels.shape == (48, 64)


def test_a_file_that_changed_is_loaded_again(tmp_path):
    path, image = tmp_path / "mine.onnx", np.ones((40, 40, 3), np.float32)
    write_network(path)
    first = BoundaryNetwork.of_file(path)
    assert first is BoundaryNetwork.of_file(path) and first.log_odds(image).max() == 1
    write_network(
        path,
        [
            helper.make_node("Sub", ["image", "image"], ["none"]),
            helper.make_node("Slice", ["none", "start", "end", "axis"], ["boundary"]),
        ],
    )
    assert BoundaryNetwork.of_file(path).log_odds(image).max() == 0


def test_the_runtime_reports_nothing_to_its_makers(tmp_path):
    """Its telemetry, which is off where CI is set, leaves a file among the temporary ones."""
    env = {name: value for name, value in os.environ.items() if name not in ("CI", "ORT_DISABLE_TELEMETRY")}
    code = "from spinseg.image.boundary.network import BoundaryNetwork as N; N.fitted().session"
    run = subprocess.run([sys.executable, "-c", code], env=env | {"TMPDIR": str(tmp_path)}, capture_output=True)
    assert run.returncode == 0 and not list(tmp_path.iterdir())


def unknown_operator(path):
    return write_network(path, [helper.make_node("Imagine", ["image"], ["boundary"])])


def endless(path):
    ones = helper.make_node("Slice", ["image", "start", "end", "axis"], ["two"])
    return write_network(
        path, [ones, helper.make_node("Sub", ["two", "two"], ["zero"]), helper.make_node("Log", ["zero"], ["boundary"])]
    )


def broken(path):
    Path(write_network(path)).write_bytes(b"no network")
    return str(path)


def cut(path):
    whole = Path(write_network(path)).read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    return str(path)


REFUSED = {
    "cannot be read: No such file": str,
    "cannot be loaded by ONNX Runtime: ": broken,
    "cannot be loaded": cut,
    "cannot be loaded by ONNX Runtime: .*Imagine": unknown_operator,
    r"must have one input, image of float32, \(1, 3, height, width\): it has picture": lambda path: write_network(
        path, name="picture"
    ),
    r"must have one input.* tensor\(double\)": lambda path: write_network(
        path,
        [
            helper.make_node("Cast", ["image"], ["single"], to=1),
            helper.make_node("Slice", ["single", "start", "end", "axis"], ["boundary"]),
        ],
        kind=TensorProto.DOUBLE,
    ),
    "cannot be run on an image of": lambda path: write_network(path, channels=4),
    "must have an output boundary: it has edges": lambda path: write_network(path, output="edges"),
    r"must have an output boundary \(2, height, width\): \(1, ": lambda path: write_network(path, n_outputs=1),
    "log-odds that are not finite": endless,
}


@pytest.mark.parametrize("line", REFUSED)
def test_what_is_no_such_network_is_refused_in_one_line(line, tmp_path):
    path = REFUSED[line](tmp_path / "mine.onnx")
    with pytest.raises(ss.InvalidInput, match=line) as caught:
        ss.segment(np.zeros((40, 60, 3), np.uint8), ss.Photo(evidence=BoundaryEvidence(network=path)), sweeps=2)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_features_are_means_and_deviations_of_the_other_outputs():
    net, rgb = (
        BoundaryNetwork.fitted("measured"),
        np.random.default_rng(0).uniform(size=(176, 160, 3)).astype(np.float32),
    )
    names = [each.name for each in net.session.get_outputs()]
    continued = np.moveaxis(np.pad(rgb, [(16, 32), (16, 16), (0, 0)], mode="symmetric"), -1, 0)
    layers = [x.astype(np.float64) for x in net.run(continued, names[1:])]
    expected = np.concatenate([f for x in layers for f in (x.mean(axis=(1, 2)), x.std(axis=(1, 2)))])
    assert names[0] == "boundary" and len(layers) == 4
    np.testing.assert_allclose(net.features(rgb), expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("shape", "before", "after"),
    [((176, 160), (16, 16), (32, 16)), ((175, 185), (16, 16), (33, 23)), ((100, 1), (46, 95), (46, 96))],
)
def test_an_image_is_continued_as_in_a_mirror(shape, before, after):
    rgb = np.random.default_rng(3).random((*shape, 3)).astype(np.float32)
    found = BoundaryNetwork.fitted().log_odds(rgb)
    assert found.shape == (2, *shape) and found.dtype == np.float32
    continued = np.pad(rgb, [*zip(before, after, strict=True), (0, 0)], mode="symmetric")
    (known,) = BoundaryNetwork.fitted().run(np.moveaxis(continued, -1, 0), ["boundary"])
    known = known[:, before[0] :, before[1] :][:, : shape[0], : shape[1]]
    np.testing.assert_allclose(found, known, atol=1e-3)


def test_the_network_of_the_package_computes_what_pytorch_computes():
    """`studies/training/reference_output.py` stored PyTorch's output in 16 bits, of a picture continued by zeros."""
    with np.load(Path(__file__).with_name("network_reference.npz")) as stored:
        picture, known = stored["picture"], stored["log_odds"].astype(np.float32)
    height, width = picture.shape[:2]
    x = np.zeros((3, height + -height % 32, width + -width % 32), np.float32)
    x[:, :height, :width] = np.moveaxis(as_picture(picture).values, -1, 0)
    found = BoundaryNetwork.fitted().run(x, ["boundary"])[0][:, :height, :width]
    assert np.ptp(known) > 8
    assert np.abs(found - known).max() < 0.02


def test_windows_leave_no_seams(monkeypatch):
    """Also where neither the windows nor the image are multiples of a cell."""
    image = np.random.default_rng(0).random((24, 700, 3)).astype(np.float32)
    whole = BoundaryNetwork.fitted().log_odds(image)
    monkeypatch.setattr(network, "WINDOW", 150)
    assert np.abs(BoundaryNetwork.fitted().log_odds(image) - whole).max() < 1e-3
    monkeypatch.setattr(network, "REACH", 2 * network.CELL)
    assert np.abs(BoundaryNetwork.fitted().log_odds(image) - whole).max() > 0.1


def test_log_odds_at_several_sizes_are_a_mean(monkeypatch):
    """Where the image becomes too large, those of its own size alone; each is brought back to the image's shape."""
    image = np.random.default_rng(1).random((40, 57, 3)).astype(np.float32)
    net = BoundaryNetwork.fitted("measured")
    own = net.log_odds(image)
    np.testing.assert_array_equal(net.mean_log_odds(image, (1.0,)), own)
    larger = [np.asarray(Image.fromarray(image[..., c]).resize((114, 80), Image.Resampling.BILINEAR)) for c in range(3)]
    back = net.log_odds(np.stack(larger, axis=-1)).reshape(2, 40, 2, 57, 2).mean(axis=(2, 4))
    both = net.mean_log_odds(image, (1.0, 2.0))
    assert np.abs(both - own).mean() > 0.1
    # Pillow's filter is a tent of four pixels, where a block has two.
    assert np.corrcoef((2 * both - own).ravel(), back.ravel())[0, 1] > 0.99
    monkeypatch.setattr(network, "MAX_ENLARGED", 9_000)
    np.testing.assert_array_equal(net.mean_log_odds(image, (1.0, 2.0)), own)


def test_a_resized_map_keeps_its_mean_and_its_slopes():
    ramp = np.indices((30, 50)).astype(np.float32)
    for shape in ((15, 25), (60, 75), (30, 50)):
        found = network.resized(ramp, shape)
        assert found.shape == (2, *shape) and found.dtype == np.float32
        for maps, axis in zip(found, (0, 1), strict=True):
            expected = (np.indices(shape)[axis] + 0.5) * ramp.shape[axis + 1] / shape[axis] - 0.5
            inner = (slice(3, -3), slice(3, -3))
            np.testing.assert_allclose(maps[inner], expected[inner], atol=1e-3)
