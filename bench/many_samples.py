#!/usr/bin/python3
"""Times what 1.28 million samples in 147 shards cost before the first step, without a manifest and with one.

Makes shards of 8,716 samples, each a picture of 2x2 and a label of one of 1,000 classes, below DIR, and trains for one
step: without the manifest, which lists all shards and writes it, and with it. "First step" is from the command to its
first step, as the record has it; "open" is the same less that of a training on one of the shards. The memory of the list
is the peak of a training with the manifest less that of a training on one shard. That the manifest is read and no shard
is listed is shown with certainty: a label of one shard is changed and the file's time put back, and the training still
has as many classes.

usage: many_samples.py [--dir /dev/shm] [--shards 147] [--samples 8716] [--rounds 3] [--program build/release/paceline]
                       [--out record.json]
"""
import argparse
import glob
import io
import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile

from many_files import MODEL
from record import header, write

BOUND_S = 5.0
BOUND_BYTES = 64_000_000
CLASSES = 1000
LABEL_AT = 512 + 512 + 512  # of the first sample: behind header and picture, and its own header


def shard(samples):
    """The bytes of a shard."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        def add(name, data):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
        for i in range(samples):
            add(f"{i:08}.ppm", b"P6\n2 2\n255\n" + bytes([i % 256]) * 12)
            add(f"{i:08}.cls", b"%d" % (i % CLASSES))
    return file.getvalue()


def train(program, top, pattern, out):
    """Seconds to the first step, peak resident bytes, classes and training images."""
    words = [program, "train", "--model", "one-layer.toml", "--data", f"shards:{pattern},test=val-0.tar,size=2",
             "--local-batch", "32", "--steps", "1", "--evaluate-every", "0", "--no-checkpoints", "--threads", "1",
             "--out", out]
    child = subprocess.Popen(words, cwd=top, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said = child.stdout.read()
    _, status, used = os.wait4(child.pid, 0)
    if status != 0:
        sys.exit(f"many_samples: {' '.join(words)} ended with {status}: {said[-500:]}")
    with open(os.path.join(top, out, "record.json"), encoding="utf-8") as file:
        record = json.load(file)
    return (record["first_step_s"], 1024 * used.ru_maxrss, record["data"]["train_samples"],
            len(record["data"]["classes"]))


def main():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dir", default="/dev/shm")
    parser.add_argument("--shards", type=int, default=147)
    parser.add_argument("--samples", type=int, default=8716)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--program", default=os.path.join(root, "build", "release", "paceline"))
    parser.add_argument("--out", help="where the JSON record goes; default: nowhere")
    args = parser.parse_args()
    program = os.path.abspath(args.program)
    times = {"first_step_without_s": [], "first_step_with_s": [], "first_step_of_one_s": []}
    peaks = {"with": [], "of_one": []}
    with tempfile.TemporaryDirectory(dir=args.dir) as top:
        with open(os.path.join(top, "one-layer.toml"), "w", encoding="utf-8") as file:
            file.write(MODEL)
        data = shard(args.samples)
        for name in [f"train-{i:04}" for i in range(args.shards)] + ["val-0"]:
            with open(os.path.join(top, name + ".tar"), "wb") as file:
                file.write(data)
        every, number = f"train-{{0000..{args.shards - 1:04}}}.tar", 0
        for _ in range(args.rounds):
            for manifest in glob.glob(os.path.join(top, "paceline-shards-*")):
                os.remove(manifest)
            train(program, top, "train-0000.tar", f"warm-{number}")  # writes the manifests of one, and of the test set
            for key, pattern in (("without", every), ("with", every), ("of_one", "train-0000.tar")):
                seconds, peak, samples, classes = train(program, top, pattern, f"{key}-{number}")
                times[f"first_step_{key}_s"].append(seconds)
                if key in peaks:
                    peaks[key].append(peak)
                if key == "with":
                    found = samples
            number += 1
        manifest_bytes = max(os.path.getsize(m) for m in glob.glob(os.path.join(top, "paceline-shards-*")))
        path = os.path.join(top, "train-0001.tar")
        before = os.stat(path)
        with open(path, "r+b") as file:
            file.seek(LABEL_AT)
            assert file.read(1) == b"0"
            file.seek(LABEL_AT)
            file.write(b"x")
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        classes_after = train(program, top, every, "after")[3]
    medians = {name: statistics.median(values) for name, values in times.items()}
    open_s = medians["first_step_with_s"] - medians["first_step_of_one_s"]
    list_bytes = statistics.median(peaks["with"]) - statistics.median(peaks["of_one"])
    result = {**header("many samples in shards"), "samples": args.shards * args.samples, "shards": args.shards, "found": found,
              "classes_after_a_label_was_changed_unseen": classes_after, "manifest_bytes": manifest_bytes,
              "open_with_manifest_s": open_s, "peak_bytes_of_the_list": list_bytes, "peaks_bytes": peaks,
              "load_at_the_end": os.getloadavg()[0], **times,
              "medians": medians}
    print(json.dumps(result, indent=1))
    if args.out:
        write(args.out, result)
    right = (found == result["samples"] and classes_after == classes == CLASSES and
             medians["first_step_with_s"] < BOUND_S and list_bytes < BOUND_BYTES)
    sys.exit(0 if right else "many_samples: a bound is not kept")


if __name__ == "__main__":
    main()
