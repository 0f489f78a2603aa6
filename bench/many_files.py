#!/usr/bin/python3
"""Times what 200,000 small files cost before the first step, without a manifest and with one.

Makes 250 classes of 800 images of 8x8 below DIR (names only: each is a hard link to one of its class), and runs, in
turns: `data manifest` (walks through all of it, sorts, writes the list), then a training of one step that walks, and one
that reads the manifest. "First step" is from the command to its first step, as the record has it. That the manifest
spares the walk is shown with certainty, not with times: one image is removed and its folder's time put back, and the
training that reads the manifest still counts it.

usage: many_files.py [--dir /dev/shm] [--classes 250] [--images 800] [--rounds 3] [--program build/release/paceline]
                     [--out record.json]
"""
import argparse
import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from record import commit, processor

BOUND_S = 3.0
MODEL = ('name = "one-layer"\n[[layer]]\nop = "global_average_pool"\n[[layer]]\nop = "dense"\nname = "fc"\n'
         'features = "classes"\n')


def make(top, classes, images):
    """A class has one picture and `images` names for it: file systems allow fewer names a file than we need."""
    for c in range(classes):
        folder = os.path.join(top, "images", f"class-{c:03}")
        os.makedirs(folder)
        first = os.path.join(folder, "image-number-000000.ppm")
        with open(first, "wb") as file:
            file.write(b"P6\n8 8\n255\n" + bytes([c % 256]) * 192)
        for i in range(1, images):
            os.link(first, os.path.join(folder, f"image-number-{i:06}.ppm"))
    with open(os.path.join(top, "one-layer.toml"), "w", encoding="utf-8") as file:
        file.write(MODEL)


def run(program, top, words):
    """Standard output, wall seconds, and the peak resident bytes of the largest child so far."""
    begin = time.monotonic()
    done = subprocess.run([program, *words], cwd=top, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"many_files: paceline {' '.join(words)} ended with {done.returncode}: {done.stderr[-500:]}")
    peak = 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return done.stdout, time.monotonic() - begin, peak


def train(program, top, out):
    shutil.rmtree(os.path.join(top, out), ignore_errors=True)
    run(program, top, ["train", "--model", "one-layer.toml", "--data", "folder:images,size=8", "--local-batch", "32",
                       "--steps", "1", "--evaluate-every", "0", "--no-checkpoints", "--threads", "1", "--out", out])
    with open(os.path.join(top, out, "record.json"), encoding="utf-8") as file:
        record = json.load(file)
    return record["first_step_s"], record["data"]["train_samples"] + record["data"]["test_samples"]


def main():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dir", default="/dev/shm")
    parser.add_argument("--classes", type=int, default=250)
    parser.add_argument("--images", type=int, default=800)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--program", default=os.path.join(root, "build", "release", "paceline"))
    parser.add_argument("--out", help="where the JSON record goes; default: nowhere")
    args = parser.parse_args()
    program = os.path.abspath(args.program)
    with tempfile.TemporaryDirectory(dir=args.dir) as top:
        make(top, args.classes, args.images)
        manifest = os.path.join(top, "images", "paceline-manifest.txt")
        times = {"walk_and_write_s": [], "first_step_without_s": [], "first_step_with_s": []}
        peak = 0
        for _ in range(args.rounds):
            said, seconds, peak = run(program, top, ["data", "manifest", "folder:images"])
            times["walk_and_write_s"].append(seconds)
            times["first_step_with_s"].append(train(program, top, "with")[0])
            os.remove(manifest)
            times["first_step_without_s"].append(train(program, top, "without")[0])
        run(program, top, ["data", "manifest", "folder:images"])
        folder = os.path.join(top, "images", "class-000")
        before = os.stat(folder)
        os.remove(os.path.join(folder, "image-number-000001.ppm"))
        os.utime(folder, ns=(before.st_atime_ns, before.st_mtime_ns))
        counted = train(program, top, "after")[1]
    files = args.classes * args.images
    found = int(re.search(r"(\d[\d,]*) images", said).group(1).replace(",", ""))
    result = {"files": files, "found": found, "counted_after_one_was_removed_unseen": counted,
              "manifest_peak_bytes": peak, "commit": commit(), "cpu": processor(),
              "load_at_the_end": os.getloadavg()[0], **times,
              "medians": {name: statistics.median(values) for name, values in times.items()}}
    text = json.dumps(result, indent=1)
    print(text)
    if args.out:
        with open(args.out, "w", encoding="utf-8") as file:
            file.write(text + "\n")
    right = found == files and counted == files and result["medians"]["walk_and_write_s"] < BOUND_S
    sys.exit(0 if right else "many_files: a bound is not kept")


if __name__ == "__main__":
    main()
