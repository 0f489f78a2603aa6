#!/usr/bin/python3
"""Makes the curves of PyTorch that parity.py compares our engines with, or computes them anew and compares.

One thread takes from seconds (mnist-cnn) to some minutes (resnet18-cifar, batch 16) for a curve.

    make_curves.py --runner build/tests/parity_run [NAME..]            writes curves/NAME.json.xz; without names all of JOBS
    make_curves.py --runner build/tests/parity_run --check [NAME..]    compares each with the stored one, at 1e-9 relative

PyTorch computes in fp64 with one thread, so that a curve is the same on every machine up to the last digits. parity.py says what a
curve has and why its path is smoothed.

Exit codes: 0 made, or as stored; 1 differed; 77 skipped (no PyTorch here).
"""

import argparse
import fnmatch
import json
import lzma
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# Before PyTorch: its threads must not spin at a barrier while somebody else has the core (a step of 0.7 s took 16 s).
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

try:
    import torch
    from torch.nn import functional as F
except ImportError as error:
    print(f"skipped: PyTorch is not there ({error}); on Debian: apt-get install python3-torch")
    sys.exit(77)

import models
import parity

ROOT = Path(__file__).resolve().parents[2]
MNIST = ["--model", "mnist-cnn", "--channels", "1", "--size", "28"]
SMALL = ["--model", str(ROOT / "recipes/models/small-cnn.toml"), "--size", "16"]
INCEPTION = ["--model", str(ROOT / "recipes/models/small-inception.toml"), "--size", "16"]
MOBILE = ["--model", str(ROOT / "recipes/models/small-mobile.toml"), "--size", "16"]
NORM = ["--model", str(ROOT / "recipes/models/small-norm.toml"), "--size", "16"]
CIFAR = ["--model", "resnet18-cifar"]
WEIGHTS = ["--class-weights", "0.25,0.5,2,1,1.5,0.75,3,1,0.4,1.2"]
LAMB = ["--lamb", "--lr", "0.01", "--weight-decay", "0.01"]
# The settings of parity.* in tests/CMakeLists.txt.
JOBS = [[*MNIST, "--batch", "32", "--lr", "0.01", "--margin", "5e-6"], SMALL, MOBILE, INCEPTION, [*MOBILE, "--freeze", "depthwise*"],
        ["--model", "resnet18", "--size", "64", "--batch", "8"],
        ["--model", "resnet18", "--size", "64"], [*CIFAR, "--batch", "4", "--steps", "5"], CIFAR,
        [*MNIST, "--batch", "16", "--lr", "0.05", "--plain"], [*SMALL, "--plain"], [*CIFAR, "--batch", "4"],
        [*CIFAR, "--batch", "32", "--steps", "5"], ["--model", "resnet18", "--size", "64", "--batch", "8", "--lr", "0.01", "--plain"],
        [*CIFAR, "--batch", "4", "--lr", "0.01", "--plain"], [*SMALL, *WEIGHTS], [*SMALL, *WEIGHTS, "--plain"],
        [*SMALL, "--clip-norm", "0.5"], [*SMALL, "--clip-norm", "0.5", "--plain"],
        [*SMALL, *LAMB], [*SMALL, *LAMB, "--plain"], NORM, [*NORM, "--plain"]]
SHIFT = 1e-3  # kShift of parity_run.cc, and of models.py


class Job:
    """The inputs of parity_run as PyTorch reads them, and the path that is being found."""

    def __init__(self, runner, options, directory, dtype=torch.float64):
        self.runner, self.options, self.directory, self.dtype = runner, options, Path(directory), dtype
        self.settings = parity.settings_of(options)
        self.path = {"redraws": {}, "shifts": {}}
        self.write()

    def write(self):
        parity.write_job(self.directory, self.options.model, self.settings, self.path)
        subprocess.run([self.runner, "inputs", self.directory], check=True)

    def weights(self):
        return {file.name.removesuffix(".f32"): torch.frombuffer(bytearray(file.read_bytes()), dtype=torch.float32)
                for file in (self.directory / "weights").iterdir()}

    def batch(self, step):
        options = self.options
        images = torch.frombuffer(bytearray((self.directory / f"images_{step}.f32").read_bytes()), dtype=torch.float32)
        labels = torch.frombuffer(bytearray((self.directory / f"labels_{step}.i32").read_bytes()), dtype=torch.int32)
        images = images.reshape(options.batch, options.size, options.size, options.channels).permute(0, 3, 1, 2)
        return images.to(self.dtype).contiguous(), labels.long()

    def redraw(self, step, which):
        counts = self.path["redraws"].setdefault(step, [0] * self.options.batch)
        for sample in which.nonzero().flatten().tolist():
            counts[sample] += 1
        self.write()

    def digests(self, tensors):
        folder = self.directory / "tensors"
        folder.mkdir(exist_ok=True)
        for file in folder.iterdir():
            file.unlink()
        for name, value in tensors.items():
            (folder / f"{name}.f64").write_bytes(value.detach().double().contiguous().numpy().tobytes())
        lines = subprocess.run([self.runner, "digest", folder], check=True, capture_output=True, text=True).stdout.splitlines()
        return dict(sorted(parity.digest_of(line) for line in lines))


def set_margins(model, kink, tie):
    for module in model.modules():
        if isinstance(module, models.Relu):
            module.margin = kink
        elif isinstance(module, models.MaxPool):
            module.margin = tie


def move_away_from_kinks(model, job, step):
    """Shifts biases, and redraws images, until the loss of the step's batch is smooth around the weights."""
    before = {n: v.clone() for n, v in model.state_dict().items()}
    margin = job.options.margin
    set_margins(model, margin, 0.03 * margin)
    model.train()
    tied = True
    with torch.no_grad():
        while tied:
            model(job.batch(step)[0])
            pools = [module for module in model.modules() if isinstance(module, models.MaxPool)]
            tied = any(pool.tied.any() for pool in pools)
            for pool in pools:
                if pool.tied.any():
                    job.redraw(step, pool.tied)
    set_margins(model, 0.0, 0.0)
    shifts = {}
    for name, value in model.named_parameters():
        counts = ((value.detach() - before[name]) / SHIFT).round()
        if counts.any():
            with torch.no_grad():
                value.copy_(before[name] + counts * SHIFT)
            shifts[name] = counts.flatten().int().tolist()
    if shifts:
        job.path["shifts"][step] = shifts
    model.load_state_dict({n: v for n, v in before.items() if "running" in n or n.endswith("tracked")}, strict=False)


def make_model(job):
    options = job.options
    model = models.make(options.model, options.channels, options.size, options.size, options.classes).to(job.dtype)
    ours = job.weights()
    theirs = {name: value for name, value in model.state_dict().items() if not name.endswith("num_batches_tracked")}
    if set(ours) != set(theirs):
        sys.exit(f"make_curves: names differ: only ours {sorted(set(ours) - set(theirs))}, only PyTorch's {sorted(set(theirs) - set(ours))}")
    model.load_state_dict({name: ours[name].to(job.dtype).reshape(value.shape) for name, value in theirs.items()}, strict=False)
    freeze(model, options.freeze)
    return model


def freeze(model, pattern):
    """Layers of these names do not learn; their batch norms keep their statistics, which PyTorch leaves to the user."""
    for path, module in model.named_modules():
        if fnmatch.fnmatchcase(path, pattern) and path:
            module.requires_grad_(False)
            if isinstance(module, torch.nn.BatchNorm2d):
                module.eval()
                module.train = lambda mode: module


def loss_of(logits, labels, options):
    """The mean over the batch; of weighted classes too, whose quotient by the sum of the weights we do not take
    (docs/decisions/class-weights.md)."""
    weights = torch.tensor(list(map(float, options.class_weights.split(","))), dtype=logits.dtype) if options.class_weights else None
    reduction = "mean" if weights is None else "sum"
    loss = F.cross_entropy(logits, labels, weight=weights, label_smoothing=options.label_smoothing, reduction=reduction)
    return loss if weights is None else loss / len(labels)


class Lamb:
    """You et al. (2020), algorithm 2 with phi(x) = x, which PyTorch does not have. Biases and batch norms have no decay and no rate of
    their own."""

    def __init__(self, model, lr, weight_decay, betas=(0.9, 0.999), epsilon=1e-8):
        self.parameters, self.lr, self.weight_decay, self.betas, self.epsilon, self.count = list(model.parameters()), lr, weight_decay, betas, epsilon, 0
        self.first = [torch.zeros_like(p) for p in self.parameters]
        self.second = [torch.zeros_like(p) for p in self.parameters]

    def zero_grad(self):
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self):
        self.count += 1
        for weight, first, second in zip(self.parameters, self.first, self.second, strict=True):
            first.lerp_(weight.grad, 1 - self.betas[0])
            second.lerp_(weight.grad.square(), 1 - self.betas[1])
            step = first / (1 - self.betas[0] ** self.count) / ((second / (1 - self.betas[1] ** self.count)).sqrt() + self.epsilon)
            rate = 1.0
            if weight.dim() > 1:
                step += self.weight_decay * weight
                rate = weight.norm() / step.norm() if weight.norm() > 0 and step.norm() > 0 else 1.0
            weight -= self.lr * rate * step


def compute(job):
    options = job.options
    model = make_model(job)
    if options.lamb:
        optimizer = Lamb(model, options.lr, options.weight_decay)
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=options.lr, momentum=options.momentum, nesterov=True,
                                    weight_decay=options.weight_decay)
    curve = {"settings": job.settings, "torch": torch.__version__, **job.path, "losses": []}
    for step in range(options.steps):
        if not options.plain:
            move_away_from_kinks(model, job, step)
        model.train()
        images, labels = job.batch(step)
        optimizer.zero_grad()
        loss = loss_of(model(images), labels, options)
        loss.backward()
        curve["losses"].append(loss.item())
        if step == 0:
            curve["gradients"] = job.digests({n: p.grad for n, p in model.named_parameters() if p.requires_grad})
        if options.clip_norm:
            torch.nn.utils.clip_grad_norm_(model.parameters(), options.clip_norm)
        optimizer.step()
        if step == 0:
            curve["statistics"] = job.digests({n: v for n, v in model.state_dict().items() if "running" in n})
    model.eval()
    with torch.no_grad():
        logits = model(images)
        curve["evaluation"] = F.cross_entropy(logits, labels, label_smoothing=options.label_smoothing).item()
        curve["logits"] = logits.flatten().tolist()
    return json.loads(json.dumps(curve))  # keys are text, as they are read


def compute_now(runner, options):
    """The curve of PyTorch for settings that have no stored one: in fp32 where ours are, which takes a fraction of fp64's time."""
    torch.set_num_threads(options.threads)
    with tempfile.TemporaryDirectory() as directory:
        return compute(Job(runner, options, directory, torch.float64 if options.plain else torch.float32))


def is_as_stored(curve):
    stored = parity.read_curve(curve["settings"])
    for name in ("redraws", "shifts"):
        if curve[name] != stored[name]:
            print(f"{name} are others than the stored ones")
            return False
    return parity.report(parity.rows_of(curve, stored), parity.LIMIT["plain"], False)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runner", required=True)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    settings = argparse.ArgumentParser()
    parity.add_settings(settings)
    jobs = {}
    for words in JOBS:
        options = settings.parse_args(words)
        jobs[parity.curve_path(parity.settings_of(options)).name.removesuffix(".json.xz")] = options
    unknown = set(arguments.names) - set(jobs)
    if unknown:
        sys.exit(f"make_curves: no such curve: {', '.join(sorted(unknown))}; there are {', '.join(jobs)}")
    agreed = True
    for name in arguments.names or jobs:
        begin = time.monotonic()
        with tempfile.TemporaryDirectory() as directory:
            curve = compute(Job(arguments.runner, jobs[name], directory))
        print(f"{name}: loss {curve['losses'][0]:.4f} -> {curve['losses'][-1]:.4f}; {time.monotonic() - begin:.0f} s in PyTorch")
        if arguments.check:
            agreed &= is_as_stored(curve)
        else:
            path = parity.curve_path(curve["settings"])
            path.parent.mkdir(exist_ok=True)
            del curve["logits"]  # what is stored is compared along the path
            path.write_bytes(lzma.compress(json.dumps(curve, separators=(",", ":")).encode(), preset=9))
    sys.exit(0 if agreed else 1)


if __name__ == "__main__":
    main()
