#!/usr/bin/python3
"""Parity with PyTorch for one model of each family of torchvision: recorded, then trained on both sides from the same weights.

    families.py --runner build/tests/parity_run [--device cpu] [--full-size] [NAME..]

Two comparisons each, dropout and stochastic depth off on both sides, nothing shifted away from kinks (parity.py says why that matters in fp32):
  training  in fp64 (the reference in double): gradients of every parameter, running statistics, the losses of 20 steps of SGD, evaluation, at 1e-9
  fp32      on --device: the losses of 20 batches and the evaluation, at 1e-4
With --full-size the networks are those of FULL_SIZE on images of 224 pixels, in batches of 2, in fp32 alone; their logits agree at 1e-5.
The learning rates are small: in such deep networks on small images an error of the first step grows ten times with each at 0.002, until a ReLU
falls on the other side.
The gradient of a bias between a batch norm and the next is zero but for rounding: distances of gradients are relative to at least a millionth of the
whole gradient's norm.

Exit codes: 0 agreed, 1 differed, 77 skipped (no PyTorch here).
"""

import argparse
import math
import sys
import tempfile
import time
import types
from pathlib import Path

import make_curves  # ends with 77 where PyTorch is not there
import models
import parity
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "share/paceline"))
import paceline_model

try:
    import torchvision
except ImportError as error:
    print(f"skipped: {error}; on Debian: apt-get install python3-torchvision")
    sys.exit(77)

# Height and width, of which a plain double-precision loop computes a step in seconds, and what the model is made with.
FAMILIES = {"alexnet": (64, {}), "convnext_tiny": (64, {"layer_scale": 0.3}), "densenet121": (32, {}), "efficientnet_b0": (64, {}), "googlenet": (64, {"aux_logits": False, "init_weights": False}),
            "inception_v3": (139, {"aux_logits": False, "init_weights": False}), "mnasnet1_0": (64, {}), "mobilenet_v2": (64, {}),
            "mobilenet_v3_small": (64, {}), "regnet_y_400mf": (64, {}), "resnet50": (96, {}), "resnext50_32x4d": (96, {}),
            "shufflenet_v2_x1_0": (64, {}), "squeezenet1_1": (64, {}), "vgg16_bn": (32, {}), "wide_resnet50_2": (96, {})}
FULL_SIZE = {"convnext_tiny": (224, FAMILIES["convnext_tiny"][1]), "vit_b_16": (224, {})}
LOGITS_LIMIT = 1e-5
CLASSES = 10
# PyTorch's gradient of hard_sigmoid has 1/6 as an fp32 number also where it computes in fp64.
FP64_LIMIT = {"mobilenet_v3_small": 1e-7}
# At 1e-7 rounding of its gradients moves its losses by 1.2e-4 within 20 steps, at 203 pixels too.
FP32_RATE = {"inception_v3": "1e-8"}


def make(name):
    torch.manual_seed(0)
    model = getattr(torchvision.models, name)(num_classes=CLASSES, **(FAMILIES | FULL_SIZE)[name][1])
    if name.startswith("mnasnet"):  # it would look for a version in the weights that are given to it, and add layers
        model._load_from_state_dict = types.MethodType(torch.nn.Module._load_from_state_dict, model)
    for module in model.modules():
        if isinstance(module, (torch.nn.Dropout, torchvision.ops.StochasticDepth)):
            module.p = 0.0
    return model


def compare(arguments, model, size, lr, dtype, device, limit, limits=None):
    settings = argparse.ArgumentParser()
    parity.add_settings(settings)
    options = settings.parse_args(["--model", str(model), "--size", str(size), "--batch", "2" if arguments.full_size else "8", "--lr", lr, "--plain"])
    with tempfile.TemporaryDirectory() as directory:
        theirs = make_curves.compute(make_curves.Job(arguments.runner, options, directory, dtype))
        parity.write_job(directory, str(model), parity.settings_of(options), theirs, arguments.threads)
        ours = parity.compute(arguments.runner, device, directory)
    least = 1e-6 * math.sqrt(sum(norm**2 for _, norm, *_ in theirs["gradients"].values()))
    for numbers in theirs["gradients"].values():
        numbers[1] = max(numbers[1], least)  # what distances are relative to
    rows = parity.rows_of(ours, theirs)
    if dtype == torch.float32:
        rows = [row for row in rows if row[0] in ("losses", "evaluation", "logits")]
    print(f"{model.stem} on {device}: {options.steps} steps at batch {options.batch} of 3x{size}x{size}, loss {ours['losses'][0]:.4f} -> {ours['losses'][-1]:.4f}")
    return parity.report(rows, limit, False, limits)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runner", required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--full-size", action="store_true")
    parser.add_argument("names", nargs="*", metavar="NAME")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    models.make = lambda path, *shape: make(Path(path).stem)
    agreed = True
    with tempfile.TemporaryDirectory() as folder:
        networks = FULL_SIZE if arguments.full_size else FAMILIES
        for name in arguments.names or networks:
            begin, size = time.monotonic(), networks[name][0]
            layers, _, _ = paceline_model.record(make(name), [3, size, size])
            model = Path(folder, f"{name}.toml")
            model.write_text(paceline_model.toml(layers, name, [3, size, size]))
            if not arguments.full_size:
                agreed &= compare(arguments, model, size, "1e-5", torch.float64, "reference-double", FP64_LIMIT.get(name, parity.LIMIT["plain"]))
            agreed &= compare(arguments, model, size, FP32_RATE.get(name, "1e-7"), torch.float32, arguments.device, parity.LIMIT["fp32"],
                              {"logits": LOGITS_LIMIT} if arguments.full_size else None)
            print(f"{name}: {time.monotonic() - begin:.0f} s", flush=True)
    sys.exit(0 if agreed else 1)


if __name__ == "__main__":
    main()
