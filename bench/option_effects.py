#!/usr/bin/python3
"""What each option of a recipe gives: the test accuracy of trainings with it beside trainings without, with the same seeds.

Seed after seed, a training with each option and one without. A training that ended is kept, one that was stopped goes on from its checkpoint, so the whole
may be stopped and started as often as needed. `paceline report OUT` compares the trainings in pairs.

usage: option_effects.py PROGRAM --data SPEC --out DIR [--model resnet8-cifar] [--epochs 15] [--seeds 3] [--batch 128] [NAME..]
Needs nothing but Python.
"""
import argparse
import json
import os
import subprocess

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
    how = ["--resume" if is_begun else "--out", directory, "--data", arguments.data, "--model", arguments.model, "--epochs", str(arguments.epochs), "--seed",
           str(seed), "--global-batch", str(arguments.batch), *arguments_of(name)]
    done = subprocess.run([arguments.program, "train", *how], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"option_effects.py: {name}, seed {seed}: {done.stderr.strip()}")
    print(name, seed, [line for line in done.stdout.splitlines() if line.startswith("epoch")][-1], flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--data", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--model", default="resnet8-cifar")
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    os.makedirs(arguments.out, exist_ok=True)
    for seed in range(arguments.seeds):
        for name in arguments.names or OPTIONS:
            train(arguments, name, seed)


if __name__ == "__main__":
    main()
