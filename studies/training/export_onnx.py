"""Export a trained network as the package runs it: ONNX, with weights in 16 bits.

    python -m studies.training.export_onnx training_data/weights/foldall.pt evidence.onnx
    python -m studies.training.export_onnx training_data/weights/foldall.npz photograph_network.onnx

A file .pt is that of `train_evidence_net`, and .npz that of `train_boundary_net`. Needs PyTorch and onnx. The runtime
computes in 32 bits: the weights are cast when the file is loaded.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnx import TensorProto, helper, numpy_helper
from torch import nn

from studies.training.evidence_net import FEATURES, EvidenceNet, Exported

SMALLEST = 64  # numbers of an array that is stored in 16 bits; smaller ones are kept as they are


class Plain(nn.Module):
    """The network of `train_boundary_net`, from its convolutions; layers that describe an image are outputs, too."""

    def __init__(self, weights: dict[str, np.ndarray]) -> None:
        super().__init__()
        self.blocks = nn.ModuleDict()
        for name in (key.removesuffix(".weight") for key in weights if key.endswith(".weight")):
            weight, bias = (
                torch.from_numpy(weights[f"{name}.{part}"].astype(np.float32)) for part in ("weight", "bias")
            )
            block = nn.Conv2d(weight.shape[1], weight.shape[0], weight.shape[2], padding=weight.shape[2] // 2)
            block.weight.data, block.bias.data = weight, bias
            self.blocks[name] = block

    def forward(self, image: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return the log-odds of boundaries and the maps of four layers."""
        x, levels, seen = F.pixel_unshuffle(image - 0.5, 2), [], []
        for level in range(5):
            x = x if level == 0 else F.max_pool2d(x, 2)
            for part in (0, 1):
                x = F.relu(self.blocks[f"down{level}{part}"](x))
            levels.append(x)
        seen.append(x)
        for level in range(3, -1, -1):
            below = F.interpolate(F.relu(self.blocks[f"lateral{level}"](x)), scale_factor=2, mode="nearest")
            x = F.relu(self.blocks[f"up{level}"](below + levels[level]))
            seen.append(x)
        return F.pixel_shuffle(self.blocks["head"](x), 2), *seen[:4]


def network_of(path: Path) -> tuple[nn.Module, list[str]]:
    """Return a trained network and the names of its outputs."""
    if path.suffix == ".npz":
        with np.load(path) as stored:
            return Plain(dict(stored)), ["boundary", "down4", "up3", "up2", "up1"]
    state = torch.load(path, map_location="cpu", weights_only=True)
    net = EvidenceNet()
    net.load_state_dict({name: x.float() if x.is_floating_point() else x for name, x in state.items()})
    return Exported(net), ["boundary", "inside", "depth", *FEATURES]


def exported(net: nn.Module, names: list[str]) -> onnx.ModelProto:
    """Return a network as ONNX, for images of any size that is a multiple of 32."""
    sizes = {2: "height", 3: "width"}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "network.onnx"
        image, axes = torch.zeros(1, 3, 64, 96), {"image": sizes, **{name: dict(sizes) for name in names}}
        for n, name in enumerate(names):
            axes[name] = {2: f"height{n}", 3: f"width{n}"} if n else sizes
        how = {"input_names": ["image"], "output_names": names, "dynamic_axes": axes}
        torch.onnx.export(net.eval(), (image,), path, dynamo=False, **how)
        return onnx.load(path)


def in_16_bits(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with large arrays stored in 16 bits, and cast."""
    graph, kept, casts = model.graph, [], []
    for tensor in graph.initializer:
        array = numpy_helper.to_array(tensor)
        if array.dtype != np.float32 or array.size < SMALLEST:
            kept.append(tensor)
            continue
        stored = f"{tensor.name}.16"
        kept.append(numpy_helper.from_array(array.astype(np.float16), stored))
        casts.append(helper.make_node("Cast", [stored], [tensor.name], to=TensorProto.FLOAT))
    nodes = [*casts, *graph.node]
    del graph.initializer[:], graph.node[:]
    graph.initializer.extend(kept)
    graph.node.extend(nodes)
    onnx.checker.check_model(model)
    return model


def main() -> None:
    """Read the weights and write the file."""
    onnx.save(in_16_bits(exported(*network_of(Path(sys.argv[1])))), sys.argv[2])


if __name__ == "__main__":
    main()
