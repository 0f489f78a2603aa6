#!/usr/bin/python3
"""Parity with PyTorch by name: the same weights and batches through both, in fp32, or in fp64 with --plain.

    parity.py --runner build/tests/parity_run --device cpu --model resnet18-cifar [--steps 20]
    parity.py --runner build/tests/parity_run --device reference-double --model resnet18-cifar --plain

Compared, each at 1e-4 relative (--plain: 1e-9):
  gradients    of batch 0, every trainable parameter by name: |ours - torch| / |torch|, Euclidean norms per tensor
  statistics   running mean and variance after one step, every batch norm by name: the same norm
  losses       of `--steps` SGD steps in a row (momentum, Nesterov, weight decay), a new batch each: relative
  evaluation   the loss of the last batch with running statistics after all steps: relative
Names and shapes must be the same sets on both sides. Beside the first step's figures stands the same distance
between PyTorch in fp32 and PyTorch in fp64: what fp32 arithmetic alone gives.

Why the path is smoothed. The gradient of ReLU jumps at zero. Of the nine million ReLU inputs of resnet18-cifar at batch 16
some lie closer to zero than their fp32 error (rms 1e-7 behind the stem, 3e-6 at the end), fall on either side, and
each alone moves every gradient before it by 1e-3: seen here, between two correct programs, and from step to step it
grows until the losses differ in the second digit. So both sides walk a path on which the gradient exists: before each
step, biases are shifted by 1e-3, on both sides alike, until no ReLU input of that batch is within `--margin` of zero,
and images are redrawn until no max pool has two winners within 3 % of that. The limit is the same for every row.

With --plain nothing is shifted or redrawn: it is the training that users do. Both sides then compute in fp64, whose error is
so much smaller (1e-16) that no input falls on the other side of a kink; the reference in double does.

Exit codes: 0 agreed, 1 differed, 77 skipped (no PyTorch here).
"""

import argparse
import copy
import os
import subprocess
import sys
import tempfile
import time

# Before PyTorch: its threads must not spin at a barrier while somebody else has the core (a step of 0.7 s took 16 s).
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

try:
    import torch
    from torch.nn import functional as F
except ImportError as error:
    print(f"skipped: PyTorch is not there ({error}); on Debian: apt-get install python3-torch")
    sys.exit(77)

import models

LIMIT = {"fp32": 1e-4, "plain": 1e-9}


class Data:
    """Batches of random images: a pattern for each class under noise as strong, so that losses really fall."""

    def __init__(self, options, generator):
        self.generator = generator
        self.shape = (options.channels, options.size, options.size)
        self.patterns = torch.randn(options.classes, *self.shape, generator=generator)
        self.batches = []
        for _ in range(options.steps):
            labels = torch.randint(0, options.classes, (options.batch,), generator=generator)
            self.batches.append((self.images_of(labels), labels))

    def images_of(self, labels):
        return self.patterns[labels] + torch.randn(len(labels), *self.shape, generator=self.generator)

    def redraw(self, batch, which):
        images, labels = self.batches[batch]
        images[which] = self.images_of(labels[which])


def randomise(model, generator):
    """PyTorch's own initial weights, and batch norms away from 1 and 0, which would hide a mix-up."""
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            with torch.no_grad():
                module.weight += 0.2 * torch.randn(module.weight.shape, generator=generator)
                module.bias += 0.2 * torch.randn(module.bias.shape, generator=generator)


def set_margins(model, kink, tie):
    for module in model.modules():
        if isinstance(module, models.Relu):
            module.margin = kink
        elif isinstance(module, models.MaxPool):
            module.margin = tie


def move_away_from_kinks(model, data, batch, margin):
    """Shifts biases, and redraws images, until the loss of `batch` is smooth around the weights; returns the shifts."""
    before = {n: v.clone() for n, v in model.state_dict().items()}
    set_margins(model, margin, 0.03 * margin)
    model.train()
    tied = True
    with torch.no_grad():
        while tied:
            model(data.batches[batch][0])
            pools = [module for module in model.modules() if isinstance(module, models.MaxPool)]
            tied = any(pool.tied.any() for pool in pools)
            for pool in pools:
                if pool.tied.any():
                    data.redraw(batch, pool.tied)
    set_margins(model, 0.0, 0.0)
    shifts = {n: (p.detach() - before[n]) for n, p in model.named_parameters() if not torch.equal(p, before[n])}
    model.load_state_dict({n: v for n, v in before.items() if "running" in n or n.endswith("tracked")}, strict=False)
    return shifts


def named_tensors(model):
    """Parameters and running statistics by name."""
    return {name: value for name, value in model.state_dict().items() if not name.endswith("num_batches_tracked")}


def train(model, data, steps, options):
    """Losses of `steps` steps, gradients of the first, running statistics after it, evaluation loss of the last batch
    at the end, and the shifts of biases before each step but the first (which finds its batch smooth)."""
    optimizer = torch.optim.SGD(model.parameters(), lr=options.lr, momentum=options.momentum,
                                nesterov=True, weight_decay=options.weight_decay)
    result = {"losses": [], "shifts": {}}
    model.train()
    for step in range(steps):
        if step > 0 and not options.plain:
            result["shifts"][step] = move_away_from_kinks(model, data, step, options.margin)
        images, labels = data.batches[step]
        images = images.to(next(model.parameters()).dtype)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels, label_smoothing=options.label_smoothing)
        loss.backward()
        result["losses"].append(loss.item())
        if step == 0:
            result["gradients"] = {n: p.grad.detach().clone() for n, p in model.named_parameters()}
        optimizer.step()
        if step == 0:
            result["after"] = {n: v.detach().clone() for n, v in named_tensors(model).items()}
    model.eval()
    with torch.no_grad():
        result["evaluation"] = F.cross_entropy(model(images), labels, label_smoothing=options.label_smoothing).item()
    return result


def write_tensors(directory, tensors):
    os.mkdir(directory)
    for name, value in tensors.items():
        value.contiguous().numpy().tofile(f"{directory}/{name}.f32")


def write_job(directory, weights, shifts, data, options):
    job = {"model": options.model, "channels": options.channels, "height": options.size, "width": options.size,
           "classes": options.classes, "batch": options.batch, "steps": options.steps, "lr": options.lr,
           "momentum": options.momentum, "nesterov": 1, "weight_decay": options.weight_decay,
           "label_smoothing": options.label_smoothing, "threads": options.threads}
    with open(f"{directory}/job.txt", "w") as file:
        file.writelines(f"{key} {value}\n" for key, value in job.items())
    write_tensors(f"{directory}/weights", weights)
    for step, tensors in shifts.items():
        write_tensors(f"{directory}/shifts_{step}", tensors)
    for k, (images, labels) in enumerate(data.batches):
        images.permute(0, 2, 3, 1).contiguous().numpy().tofile(f"{directory}/images_{k}.f32")
        labels.to(torch.int32).numpy().tofile(f"{directory}/labels_{k}.i32")


def read_tensors(directory, like, dtype):
    """Every array of `directory` by name, in the shapes of `like`; names must be the same set."""
    ending = ".f64" if dtype == torch.float64 else ".f32"
    found = {file[:-len(ending)] for file in os.listdir(directory)}
    if found != set(like):
        sys.exit(f"parity: names differ: only ours {sorted(found - set(like))}, only PyTorch's {sorted(set(like) - found)}")
    tensors = {}
    for name, value in like.items():
        ours = torch.frombuffer(bytearray(open(f"{directory}/{name}{ending}", "rb").read()), dtype=dtype)
        if ours.numel() != value.numel():
            sys.exit(f"parity: {name} has {ours.numel()} elements, but {value.numel()} in PyTorch")
        tensors[name] = ours.reshape(value.shape)
    return tensors


def tensor_distances(ours, theirs, names):
    return {n: ((ours[n].double() - theirs[n].double()).norm() / theirs[n].double().norm()).item() for n in names}


def loss_distances(ours, theirs):
    return {f"step {i}": abs(a - b) / abs(b) for i, (a, b) in enumerate(zip(ours, theirs))}


def report(rows, limit, quiet):
    """Prints the table; true when every row is within the limit."""
    print(f"{'what':<12} {'compared':>8} {'median':>10} {'largest':>10}  {'at':<34} {'fp32 alone':>10}  verdict")
    agreed = True
    for what, distances, alone in rows:
        worst = max(distances, key=lambda n: distances[n] if distances[n] == distances[n] else float("inf"))
        within = all(d <= limit for d in distances.values())  # false for NaN
        agreed &= within
        median = sorted(distances.values())[len(distances) // 2]
        print(f"{what:<12} {len(distances):>8} {median:>10.1e} {distances[worst]:>10.1e}  {worst:<34} "
              f"{format(max(alone.values()), '.1e') if alone else '':>10}  {'agrees' if within else 'DIFFERS'}")
        if not within and not quiet:
            for name, distance in distances.items():
                print(f"    {name:<40} {distance:.2e}{'' if distance <= limit else f'  <-- over {limit:.0e}'}")
    return agreed


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runner", required=True)
    parser.add_argument("--device", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--channels", type=int, default=3)
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--lr", type=float, default=0.002)
    parser.add_argument("--margin", type=float, default=1e-4, help="some 30 times the fp32 error of the deepest ReLU input")
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--weight-decay", type=float, default=5e-4)
    parser.add_argument("--label-smoothing", type=float, default=0.1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plain", action="store_true", help="fp64 on both sides, without shifting or redrawing anything")
    parser.add_argument("--keep", help="leave the job's files in this new directory")
    parser.add_argument("--quiet", action="store_true")
    return parser.parse_args()


def main():
    options = parse()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    generator = torch.Generator().manual_seed(options.seed)
    model = models.make(options.model, options.channels, options.size, options.size, options.classes)
    randomise(model, generator)
    data = Data(options, generator)
    if not options.plain:
        move_away_from_kinks(model, data, 0, options.margin)
    start = {n: v.clone() for n, v in named_tensors(model).items()}
    twin = copy.deepcopy(model).double()
    if options.plain:
        model = model.double()
    dtype = next(model.parameters()).dtype
    limit = LIMIT["plain" if options.plain else "fp32"]

    with tempfile.TemporaryDirectory() as temporary:
        directory = options.keep or temporary
        os.makedirs(directory, exist_ok=True)
        exact = train(twin, data, 1, options)
        begin = time.monotonic()
        theirs = train(model, data, options.steps, options)
        write_job(directory, start, theirs["shifts"], data, options)
        middle = time.monotonic()
        subprocess.run([options.runner, directory, options.device], check=True)
        end = time.monotonic()
        out = f"{directory}/{options.device}"
        gradients = read_tensors(f"{out}/gradients", named_tensors(model), dtype)
        after = read_tensors(f"{out}/after_one_step", named_tensors(model), dtype)
        losses = [float(line) for line in open(f"{out}/losses.txt")]
        evaluation = float(open(f"{out}/evaluation.txt").read())
    assert len(losses) == options.steps

    trainable = list(theirs["gradients"])
    running = [name for name in theirs["after"] if "running" in name]
    rows = [("gradients", tensor_distances(gradients, theirs["gradients"], trainable),
             tensor_distances(theirs["gradients"], exact["gradients"], trainable))]
    if running:
        rows.append(("statistics", tensor_distances(after, theirs["after"], running),
                     tensor_distances(theirs["after"], exact["after"], running)))
    rows.append(("losses", loss_distances(losses, theirs["losses"]), None))
    rows.append(("evaluation", {"last batch": abs(evaluation - theirs["evaluation"]) / theirs["evaluation"]}, None))

    count = sum(value.numel() for value in model.parameters())
    print(f"{options.model} on {options.device}: {count:,} parameters, batch {options.batch} of {options.channels}x"
          f"{options.size}x{options.size}, {options.steps} SGD steps at lr {options.lr}, loss {losses[0]:.4f} -> "
          f"{losses[-1]:.4f}; limit {limit:.0e} relative; {end - middle:.0f} s here, {middle - begin:.0f} s in PyTorch")
    sys.exit(0 if report(rows, limit, options.quiet) else 1)


if __name__ == "__main__":
    main()
