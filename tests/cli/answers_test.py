#!/usr/bin/env python3
"""Each command that measures answers as much by the CUDA engine as by the processor's.

    tests/cli/answers_test.py PROGRAM

Every command runs with --device cpu and with --device cuda-on-host on the same small model. Of both the report is compared: which
sections, answers, figures and tables are there, which answers are measured, which columns and how many rows the tables have, and
which of their figures are missing. What a device cannot have is in APART, with the reason. No record may contradict itself.
Ends with 1 and a line for each difference.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

DEVICES = ["cpu", "cuda-on-host"]
MODEL = """
[[layer]]
op = "conv2d"
name = "conv"
channels = 8
stride = 2
padding = 1
[[layer]]
op = "batch_norm"
name = "norm"
[[layer]]
op = "relu"
[[layer]]
op = "global_average_pool"
[[layer]]
op = "dense"
name = "fc"
features = "classes"
"""
SMALL = ["--model", "small.toml", "--data", "synthetic,train=64,test=16", "--precision", "fp32"]
WINDOW = ["--threads", "1", "--window-steps", "6", "--window-seconds", "9", "--warmup-steps", "3", "--repeats", "1",
          "--measure-again", "0"]
TRAIN = ["train", *SMALL, "--threads", "1", "--local-batch", "8", "--epochs", "2"]
# Each with the answers that must be there, so that two empty reports are not alike.
CASES = [
    ("train, alone", TRAIN, {"best", "limit"}),
    ("train", [*TRAIN, "--workers", "2"], {"best", "limit", "network"}),
    ("train, shards", [*TRAIN, "--workers", "2", "--shard", "4"], {"best", "limit", "network"}),
    ("train, bf16", ["launch", "-n", "2", "--", *TRAIN, "--gradients-as", "bf16"], {"best", "limit", "network"}),
    ("train, waited for", [*TRAIN, "--workers", "2", "--bn", "sync"], {"best", "limit", "network"}),
    ("train, skip", [*TRAIN, "--workers", "2", "--on-nan", "skip"], {"best", "limit", "network"}),
    ("train, data-parallel", [*TRAIN, "--workers", "2", "--parallel", "data-parallel"], {"best", "limit"}),
    ("sweep", ["sweep", *SMALL, *WINDOW, "--batches", "4,8"], {"best", "batch", "limit"}),
    ("sweep of 2 workers", ["sweep", *SMALL, *WINDOW, "--workers", "2", "--batches", "4,8"], {"best", "batch", "limit", "network"}),
    ("scale", ["scale", *SMALL, *WINDOW, "--workers", "1,2", "--mode", "both", "--batches", "4,8"], {"best", "batch", "workers", "limit"}),
    ("converge", ["converge", *SMALL, "--threads", "1", "--baseline-batch", "8", "--large-batch", "16", "--variants", "linear",
                  "--epochs", "2", "--repeats", "1"], {"best", "limit", "accuracy"}),
    ("converge by workers", ["converge", *SMALL, "--threads", "1", "--compare", "workers", "--workers", "1,2", "--baseline-batch", "8",
                             "--epochs", "2", "--repeats", "1"], {"best", "limit", "accuracy"}),
    ("search", ["search", *SMALL, "--threads", "1", "--validation-split", "0.25", "--lr", "0.1,0.01", "--local-batch", "8",
                "--epochs", "1"], set()),
    # Whole epochs, of which further repeats are short too. Collectives alone are timed on the processor only (measuring.md).
    ("study", ["study", *SMALL, "--threads", "1", "--workers", "1,2", "--batches", "4,8", "--repeats", "1", "--epochs", "2",
               "--baseline-batch", "8", "--large-batch", "16", "--variants", "linear", "--no-with-comm"],
     {"best", "batch", "workers", "limit", "accuracy"}),
    ("comm", ["comm", "--workers", "2", "--sizes", "1K:4K"], set()),
    ("evaluate", ["evaluate", "OUT/train, alone"], set()),
]
BAD = re.compile(r"^error [a-z]|contradict themselves|record contradicts itself|No configuration can be recommended")
QUESTION = re.compile(r"[^.?:]*\?")
# (section, table, column) whose figures only the processor has, and why.
APART = {("cause", "cause", "bound"): "product and copy are measured on the processor (measuring.md)"}
# (section, column) whose figures chance decides on: a ceiling that was timed shortly may lie below the steps' own bandwidth, and is none.
COLUMNS_OF_CHANCE = {("bandwidth", "utilisation")}
# Tables with a row for each part of a loss that is not 0.
OF_CHANCE = {("efficiency", "scale-weak-loss"), ("efficiency", "scale-strong-loss")}

# Its errors are those of `paceline check`; a warning, as of a peak of memory off the plan, comes and goes.
OF_WARNINGS = {"check-records"}
# Times of the CUDA engine on the processor say nothing of a GPU, so more workers are not predicted from them.
OF_REAL_DEVICES = {"prediction"}
# What there is only if several workers are the fastest, or a variant that has a second batch; chance decides which is.
IF_SEVERAL = {"answer network", "waterfall step", "timeline timeline-baseline"}
OF_THE_FASTEST = {"scale": IF_SEVERAL, "study": IF_SEVERAL, "converge by workers": IF_SEVERAL, "converge": {"answer batch", "figure batch"}}


def table_figures(section, table):
    """The number of rows, and the missing figures of each column."""
    key = (section, table["id"])
    if key in OF_CHANCE:
        return {f"table {key[1]}": "there"}
    figures = {f"table {key[1]}": f"{table['rows']} rows"}
    for column in table["columns"]:
        is_apart = (*key, column["key"]) in APART or (section, column["key"]) in COLUMNS_OF_CHANCE
        missing = sum(text == "-" for text in column.get("text", []))
        figures[f"table {key[1]}, {column['key']}"] = "apart" if is_apart else f"{missing} missing"
    return figures


def contents(document):
    """What a report has: for each section its parts by name."""
    sections = {}
    for section in document["sections"]:
        parts = sections[section["id"]] = {}
        for block in section["blocks"]:
            if block["type"] == "answer":
                is_measured = block["certainty"] != "not_measured"
                is_of_one = block["id"] == "network" and block["sentence"] == "One worker sends nothing."
                parts[f"answer {block['id']}"] = "of one worker" if is_of_one else "measured" if is_measured else "not measured"
            elif block["type"] == "table":
                parts.update(table_figures(section["id"], block))
            elif block["type"] == "paragraph" and section["id"] == "summary":
                question = QUESTION.match(block["text"])
                if question:
                    parts[question.group()] = "not measured" if "Not measured" in block["text"] else "answered"
            elif block.get("id"):
                parts[f"{block['type']} {block['id']}"] = "there"
    return sections


def differences(case, must, reports):
    found = [contents(reports[device]) for device in DEVICES]
    lines = []
    for section in sorted((found[0].keys() | found[1].keys()) - OF_WARNINGS - OF_REAL_DEVICES):
        parts = [of_one.get(section) for of_one in found]
        if None in parts:
            lines.append(f"section {section}: absent by {DEVICES[parts.index(None)]}")
            continue
        for name in sorted(parts[0].keys() | parts[1].keys()):
            has = [of_one.get(name, "absent") for of_one in parts]
            if has[0] != has[1] and name not in OF_THE_FASTEST.get(case, ()):
                lines.append(f"section {section}: {name}: {has[0]} by {DEVICES[0]}, {has[1]} by {DEVICES[1]}")
    for device, sections in zip(DEVICES, found):
        lines += [f"answer {name}: not measured by {device}" for name in sorted(must)
                  if sections.get("answer", {}).get(f"answer {name}") != "measured"]
    return [f"{case}: {line}" for line in lines]


def faults(program, words, folder):
    """What is wrong in how a command ends, and in what it says."""
    done = subprocess.run([program, *words], cwd=folder, capture_output=True, text=True, timeout=120)
    text = done.stdout + done.stderr
    said = [line for line in text.splitlines() if BAD.search(line)]
    if done.returncode == 0 and not said:
        return []
    return [f"paceline {' '.join(words)}: exit {done.returncode}: " + ("; ".join(said) or text)]


def main(program):
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "small.toml").write_text(MODEL)
        for case, words, must in CASES:
            if words[0] == "launch" and not Path(program).with_name("paceline_gloo.so").exists():
                print(f"left out: {case}: the program was built without gloo")
                continue
            reports = {}
            for device in DEVICES:
                out, page = f"{device}/{case}", Path(folder, f"{device}, {case}.json")
                measure = [word.replace("OUT", device) for word in words] + ["--device", device, "--out", out]
                for command in (measure, ["report", out, "--json", page.name], ["explain", out], ["check", out]):
                    wrong += faults(program, command, folder)
                reports[device] = json.loads(page.read_text()) if page.exists() else {"sections": []}
            wrong += differences(case, must, reports)
    for line in wrong:
        print(line)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main(str(Path(sys.argv[1]).resolve()))
