#!/usr/bin/python3
"""What each option of a recipe gives: the test accuracy of trainings with it beside trainings without, with the same seeds.

Seed after seed, a training with each option and one without. A training that ended is kept, one that was stopped goes on from its checkpoint, so the whole
may be stopped and started as often as needed. What counts is the test accuracy after the last epoch, with --ema that of the averaged weights. A difference is the mean
over pairs of one seed, with its interval of 95 % by Student's distribution; an interval that holds 0 decides nothing.

usage: option_effects.py PROGRAM --data SPEC --out DIR [--model resnet8-cifar] [--epochs 15] [--seeds 3] [--batch 128] [--record FILE] [NAME..]
Needs nothing but Python.
"""
import argparse
import json
import math
import os
import statistics
import subprocess

from record import header, write

BASE = ["--optimizer", "sgd", "--momentum", "0.9", "--nesterov", "--weight-decay", "5e-4", "--lr", "0.4", "--schedule", "one-cycle",
        "--crop-padding", "4", "--flip", "random"]
# An option by its name, and what it changes of the base. Rates and strengths are those of the options' publications.
OPTIONS = {"base": [],
           "clip-norm": ["--clip-norm", "1"],
           "ema": ["--ema", "0.999"],
           "mixup": ["--mixup", "0.2"],
           "cutmix": ["--cutmix", "1"],
           "trivial-augment": ["--trivial-augment"],
           "random-erasing": ["--random-erasing", "0.25"],
           "label-smoothing": ["--label-smoothing", "0.1"],
           "micro-batch": ["--micro-batch", "32"],
           "lamb": ["--optimizer", "lamb", "--lr", "0.02", "--weight-decay", "0.05"]}


def without(base, names):
    """The options of `base` but those in `names`, each with its value if it has one."""
    kept, skip = [], False
    for word in base:
        if word.startswith("--"):
            skip = word in names
        if not skip:
            kept.append(word)
    return kept


def arguments_of(name):
    changed = {word for word in OPTIONS[name] if word.startswith("--")}
    if name == "lamb":
        changed |= {"--momentum", "--nesterov"}
    return without(BASE, changed) + OPTIONS[name]


def is_complete(directory):
    try:
        with open(os.path.join(directory, "record.json")) as file:
            return json.load(file).get("status") == "complete"
    except (OSError, ValueError):
        return False


def train(arguments, name, seed):
    directory = os.path.join(arguments.out, f"{name}-seed{seed}")
    if is_complete(directory):
        return
    is_begun = os.path.isdir(directory) and any(name.startswith("checkpoint") for name in os.listdir(directory))
    how = [*(["--resume", directory] if is_begun else []), "--out", directory, "--data", arguments.data, "--model", arguments.model, "--epochs", str(arguments.epochs), "--seed",
           str(seed), "--global-batch", str(arguments.batch), *arguments_of(name)]
    done = subprocess.run([arguments.program, "train", *how], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"option_effects.py: {name}, seed {seed}: {done.stderr.strip()}")
    print(name, seed, [line for line in done.stdout.splitlines() if line.startswith("epoch")][-1], flush=True)


# Student's t of 97.5 %, by degrees of freedom.
QUANTILES = [math.inf, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262]


def accuracy_of(arguments, name, seed):
    """After the last epoch; none where this training is not complete."""
    directory = os.path.join(arguments.out, f"{name}-seed{seed}")
    if not is_complete(directory):
        return None
    with open(os.path.join(directory, "record.json")) as file:
        last = json.load(file)["epochs"][-1]
    return last.get("ema_test_accuracy") if name == "ema" else last["test_accuracy"]


def row_of(arguments, name):
    pairs = [(accuracy_of(arguments, name, seed), accuracy_of(arguments, "base", seed)) for seed in range(arguments.seeds)]
    pairs = [pair for pair in pairs if None not in pair]
    if not pairs:
        return None
    differences = [100 * (with_it - without_it) for with_it, without_it in pairs]
    row = {"accuracy": [round(statistics.mean(pair[0] for pair in pairs), 4)], "seeds": str(len(pairs)), "options": " ".join(OPTIONS[name])}
    if name == "base":
        return row
    mean = statistics.mean(differences)
    if len(differences) < 2:
        return {**row, "points": [round(mean, 2)], "verdict": "not decided"}
    half = QUANTILES[len(differences) - 1] * statistics.stdev(differences) / math.sqrt(len(differences))
    verdict = "more" if mean - half > 0 else "less" if mean + half < 0 else "not decided"
    return {**row, "points": [round(mean, 2), round(mean - half, 2), round(mean + half, 2)], "verdict": verdict}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--data", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--model", default="resnet8-cifar")
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--record", help="a file for the record of the differences")
    parser.add_argument("names", nargs="*", help="of the options; base always belongs to them")
    arguments = parser.parse_args()
    os.makedirs(arguments.out, exist_ok=True)
    names = [name for name in OPTIONS if name == "base" or not arguments.names or name in arguments.names]
    for seed in range(arguments.seeds):
        for name in names:
            train(arguments, name, seed)
    rows = {name: row_of(arguments, name) for name in names}
    for name, row in rows.items():
        points = row.get("points", [])
        print(f"{name:16} {100 * row['accuracy'][0]:.2f} %  " + (f"{points[0]:+.2f} points" if points else "") +
              (f" [{points[1]:+.2f}, {points[2]:+.2f}]" if len(points) == 3 else "") + f"  {row.get('verdict', '')} ({row['seeds']} seeds)")
    version = subprocess.run([arguments.program, "--version"], capture_output=True, text=True).stdout
    write(arguments.record, {**header(f"test accuracy of {arguments.model} after {arguments.epochs} epochs of {arguments.data.split(',')[0].split('/')[-1]} with an option "
                                      "minus that without, of pairs of one seed"), "program": version.split()[-1].strip("()"), "base": " ".join(BASE),
                             "units": {"accuracy": "%", "points": "points"}, "rows": rows})


if __name__ == "__main__":
    main()
