#!/usr/bin/python3
"""Parity with PyTorch by name: one of our engines beside a stored curve that PyTorch computed in fp64, or beside PyTorch.

    parity.py --runner build/tests/parity_run --device cpu --model resnet18-cifar [--steps 20]
    parity.py --runner build/tests/parity_run --device reference-double --model resnet18-cifar --plain

Compared, each at 1e-4 relative (--plain, where our side computes in fp64 too: 1e-9):
  gradients    of batch 0, every trainable parameter by name: |ours - torch| / |torch|, Euclidean norms per tensor
  statistics   running mean and variance after one step, every batch norm by name: the same norm
  losses       of `--steps` SGD steps in a row (momentum, Nesterov, weight decay), a new batch each: relative
  evaluation   the loss of the last batch with running statistics after all steps: relative
  logits       of that batch, where PyTorch computes now: the largest difference, relative to the largest logit
Names and numbers of elements must be the same sets on both sides.

Weights and batches follow from the seed (inputs.h). make_curves.py computed the curves, curves/*.json.xz, with PyTorch, which is not
needed for them here; `./x test --long` computes them anew and compares. Settings without a stored curve are computed by PyTorch now,
in fp32 unless --plain. Of each tensor a curve has the norm and the dot products with 8 fixed
vectors of random signs: the root mean square of the differences of these products is an estimate of |ours - torch| that no difference
escapes, wherever in the tensor it is (Johnson and Lindenstrauss).

Why the path is smoothed. The gradient of ReLU jumps at zero. Of the nine million ReLU inputs of resnet18-cifar at batch 16
some lie closer to zero than their fp32 error (rms 1e-7 behind the stem, 3e-6 at the end), fall on either side, and
each alone moves every gradient before it by 1e-3: seen here, between two correct programs, and from step to step it
grows until the losses differ in the second digit. So both sides walk a path on which the gradient exists: before each
step, biases are shifted by multiples of 1e-3, on both sides alike, until no ReLU input of that batch is within `--margin` of zero,
and images are redrawn until no max pool has two winners within 3 % of that. A curve has the shifts and how often each image was drawn
again. The limit is the same for every row.

With --plain nothing is shifted or redrawn: it is the training that users do. Both sides then compute in fp64, whose error is
so much smaller (1e-16) that no input falls on the other side of a kink; the reference in double does.

Exit codes: 0 agreed, 1 differed, 77 skipped (no stored curve, and no PyTorch here).
"""

import argparse
import json
import lzma
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LIMIT = {"fp32": 1e-4, "plain": 1e-9}
CURVES = Path(__file__).resolve().parent / "curves"


def add_settings(parser):
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
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--freeze", default="", help="a pattern of layers that do not learn (train --freeze)")
    parser.add_argument("--class-weights", default="", help="a weight for each class, separated by commas: the loss of train --class-weights")
    parser.add_argument("--clip-norm", type=float, default=0, help="gradients are clipped to this norm (train --clip-norm)")
    parser.add_argument("--lamb", action="store_true", help="LAMB in place of SGD (train --optimizer lamb)")
    parser.add_argument("--plain", action="store_true", help="fp64 on both sides, without shifting or redrawing anything")


def settings_of(options):
    """What a curve depends on."""
    names = ("channels", "size", "classes", "batch", "steps", "lr", "margin", "momentum", "weight_decay", "label_smoothing", "seed", "freeze", "class_weights",
             "clip_norm", "lamb", "plain")
    return {"model": Path(options.model).stem, **{name: getattr(options, name) for name in names}}


def curve_path(settings):
    kind = ("-frozen" if settings["freeze"] else "") + ("-weighted" if settings["class_weights"] else "") + ("-clipped" if settings["clip_norm"] else "") + ("-lamb" if settings["lamb"] else "") + ("-plain" if settings["plain"] else "")
    return CURVES / f"{settings['model']}-b{settings['batch']}-{settings['steps']}{kind}.json.xz"


def read_curve(settings):
    path = curve_path(settings)
    curve = json.loads(lzma.decompress(path.read_bytes()))
    made = {"freeze": "", "class_weights": "", "clip_norm": 0, "lamb": False, **curve["settings"]}
    other = {name: value for name, value in settings.items() if made[name] != value}
    if other:
        sys.exit(f"parity: {path.name} was made with other settings: {({name: made[name] for name in other})}, and not {other}")
    return curve


def write_job(directory, model, settings, path, threads=1):
    """job.txt for parity_run; `path` has the redraws and shifts of a curve."""
    job = {"model": model, "height": settings["size"], "width": settings["size"], "nesterov": 1, "threads": threads,
           **{name: settings[name] for name in ("channels", "classes", "batch", "steps", "lr", "momentum", "weight_decay",
                                                "label_smoothing", "seed")}}
    for name in ("freeze", "class_weights", "clip_norm", "lamb"):
        if settings[name]:
            job[name] = settings[name]
    for step, counts in path["redraws"].items():
        job[f"redraws_{step}"] = ",".join(map(str, counts))
    for step, shifts in path["shifts"].items():
        for name, counts in shifts.items():
            job[f"shift_{step}_{name}"] = ",".join(map(str, counts))
    Path(directory, "job.txt").write_text("".join(f"{key} {value}\n" for key, value in job.items()))


def digest_of(line):
    """(name, [elements, norm, projections..]) of a line of parity_run."""
    name, *numbers = line.split()
    return name, list(map(float, numbers))


def digest_distances(ours, theirs):
    """|ours - torch| / |torch| of each tensor, as its projections tell; the names must be the same set."""
    if set(ours) != set(theirs):
        sys.exit(f"parity: names differ: only ours {sorted(set(ours) - set(theirs))}, only PyTorch's {sorted(set(theirs) - set(ours))}")
    distances = {}
    for name, (elements, norm, *projections) in theirs.items():
        if ours[name][0] != elements:
            sys.exit(f"parity: {name} has {ours[name][0]:.0f} elements, but {elements:.0f} in PyTorch")
        squares = [(a - b) ** 2 for a, b in zip(ours[name][2:], projections, strict=True)]
        distances[name] = math.sqrt(sum(squares) / len(squares)) / (norm or 1)  # the mean that a frozen batch norm keeps is 0
    return distances


def loss_distances(ours, theirs):
    return {f"step {i}": abs(a - b) / abs(b) for i, (a, b) in enumerate(zip(ours, theirs, strict=True))}


def report(rows, limit, quiet, limits=None):
    """Prints the table; true when every row is within its limit: that of `limits` by the row's name, else `limit`."""
    usual = limit
    print(f"{'what':<12} {'compared':>8} {'median':>10} {'largest':>10}  {'at':<34}  verdict")
    agreed = True
    for what, distances in rows:
        limit = (limits or {}).get(what, usual)
        worst = max(distances, key=lambda n: distances[n] if distances[n] == distances[n] else float("inf"))
        within = all(d <= limit for d in distances.values())  # false for NaN
        agreed &= within
        median = sorted(distances.values())[len(distances) // 2]
        print(f"{what:<12} {len(distances):>8} {median:>10.1e} {distances[worst]:>10.1e}  {worst:<34}  {'agrees' if within else 'DIFFERS'}")
        if not within and not quiet:
            for name, distance in distances.items():
                print(f"    {name:<40} {distance:.2e}{'' if distance <= limit else f'  <-- over {limit:.0e}'}")
    return agreed


def rows_of(ours, theirs):
    """What is compared of two curves."""
    rows = [("gradients", digest_distances(ours["gradients"], theirs["gradients"]))]
    if theirs["statistics"] or ours["statistics"]:
        rows.append(("statistics", digest_distances(ours["statistics"], theirs["statistics"])))
    rows.append(("losses", loss_distances(ours["losses"], theirs["losses"])))
    rows.append(("evaluation", {"last batch": abs(ours["evaluation"] - theirs["evaluation"]) / theirs["evaluation"]}))
    if "logits" in theirs:  # a stored curve has none
        most = max(map(abs, theirs["logits"]))
        rows.append(("logits", {"last batch": max(abs(a - b) for a, b in zip(ours["logits"], theirs["logits"], strict=True)) / most}))
    return rows


def compute(runner, device, directory):
    """The curve of one of our engines for the job in `directory`."""
    subprocess.run([runner, directory, device], check=True)
    out = Path(directory, device)
    curve = {"gradients": {}, "statistics": {}, "losses": list(map(float, (out / "losses.txt").read_text().split())),
             "evaluation": float((out / "evaluation.txt").read_text()), "logits": list(map(float, (out / "logits.txt").read_text().split()))}
    for line in (out / "digest.txt").read_text().splitlines():
        what, rest = line.split(" ", 1)
        name, digest = digest_of(rest)
        curve[what][name] = digest
    return curve


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runner", required=True)
    parser.add_argument("--device", required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--keep", help="leave the job's files in this new directory")
    parser.add_argument("--quiet", action="store_true")
    add_settings(parser)
    options = parser.parse_args()
    settings = settings_of(options)
    if curve_path(settings).is_file():
        theirs, where = read_curve(settings), "stored, in fp64"
    else:  # make_curves.py has not stored one: PyTorch computes beside us, or the test is skipped
        from make_curves import compute_now
        theirs, where = compute_now(options.runner, options), "here"
    limit = LIMIT["plain" if options.plain else "fp32"]
    with tempfile.TemporaryDirectory() as temporary:
        directory = options.keep or temporary
        os.makedirs(directory, exist_ok=True)
        write_job(directory, options.model, settings, theirs, options.threads)
        begin = time.monotonic()
        ours = compute(options.runner, options.device, directory)
        seconds = time.monotonic() - begin
    count = sum(elements for elements, *_ in theirs["gradients"].values())
    print(f"{options.model} on {options.device}: {count:,.0f} parameters, batch {options.batch} of {options.channels}x"
          f"{options.size}x{options.size}, {options.steps} SGD steps at lr {options.lr}, loss {ours['losses'][0]:.4f} -> "
          f"{ours['losses'][-1]:.4f}; limit {limit:.0e} relative; {seconds:.0f} s, beside PyTorch {theirs['torch']}, {where}")
    sys.exit(0 if report(rows_of(ours, theirs), limit, options.quiet) else 1)


if __name__ == "__main__":
    main()
