#!/usr/bin/env python3
"""Runs every command that the documents show, as far as that costs no more than a second or two.

    commands_test.py --program build/release/paceline [DOCUMENT...]

A command is a line of a code block (indented or fenced) that begins with paceline, ./x, bench/, build/release/ or a launcher of
processes; a `#` begins a remark, `...` alone stands for further options, [brackets] for what may be left out. Also what stands in
`backquotes` and begins with paceline and a command.

- All options of all commands are looked up in --help (of bench/: in the source).
- train, sweep, scale, converge, search, study, launch and sbatch run with --plan, which reads recipe, data and values and computes
  nothing; the rest runs as it stands, on small made-up data, runs and tables in a temporary folder.
- `<!-- needs: WHAT -->` above a block leaves the running out of it; WHAT is one of NEEDS. Pages of results need hours or real data as
  a whole. Of what stands in backquotes, only what has a plan is run.

Ends with 1 and `document:line: command: what is wrong` for each.
"""

import argparse
import io
import json
import os
import re
import shlex
import signal
import struct
import subprocess
import sys
import tarfile
import tempfile
import time
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NEEDS = {"a cluster", "a GPU", "hours", "the network", "real data"}
PLANNED = {"train", "sweep", "scale", "converge", "search", "study", "launch", "sbatch"}
SMALL_COMM = ["--sizes", "1K:2K"]
BEGINNING = re.compile(r"(?:\$ )?((?:[A-Z_]+=\S+ )*(?:(?:mpirun|srun|torchrun) .*?)?(?:paceline |\./x |bench/|build/release/).*)")
# What stands for something of the reader's, and what stands there in the test.
STANDS_FOR = [(re.compile(pattern), text) for pattern, text in [
    (r"\b(cifar10|mnist):DIR", r"\1:\1"), (r"cifar10:/data/cifar10", "cifar10:cifar10"), (r"\bfolder:DIR", "folder:images"), (r"\bfolder:fruits-360", "folder:images"),
    (r"paceline-out/(train|comm)-(\.\.\.|\d+)", r"paceline-out/\1-1"), (r"paceline-out/study-\.\.\.", "paceline-out/after"), (r"\btrain-2\d+-\d+\b", "train-2"),
    (r"\bCHECKPOINT\b", "paceline-out/train-1"), (r"\b(DIR1|BEFORE|RECORD\.\.)(?=\s|$)", "paceline-out/study"),
    (r"paceline-out/before paceline-out/after", "paceline-out/before paceline-out/study"), (r"\b(DIR2|AFTER)\b", "paceline-out/after"), (r"^import FILES\.\.", "import trace.json"), (r"\bFILES\.\.", "table.csv"),
    (r"^serve DIR\b", "serve paceline-out"), (r"^runs rm", "runs rm --yes"), (r"^init (photos|DIR|fruits-360)\b", "init images"),
    (r"--weights \w+\.safetensors", ""), (r"--emulate-compute one\b", "--emulate-compute paceline-out/train-1"), (r"\b(cat\.jpg|holiday|photos)(?=\s|$)", "images"), (r"[\[\]]", ""), (r"(^|\s)'?\.\.\.'?(?=\s|$)", " ")]]


class Command:
    def __init__(self, page, line, text, needs, is_inline):
        self.page, self.line, self.text, self.needs, self.is_inline = page, line, text, needs, is_inline
        self.words = shlex.split(text, comments=True)
        while self.words and self.words[0] != "paceline" and not re.match(r"\./x|bench/|build/release/", self.words[0]):
            self.words.pop(0)  # a launcher, or a variable of the environment
        if self.words[0] == "build/release/paceline":
            self.words[0] = "paceline"


def commands_of(page, text):
    """The commands of a page, in its order; raises ValueError("line: ...") for a marker that says nothing we know."""
    found, needs, is_fenced, open_line = [], None, False, None
    for number, line in enumerate(text.splitlines(), 1):
        marker = re.fullmatch(r"<!-- needs: (.*?) -->", line.strip())
        if marker:
            needs = marker.group(1)
            if needs not in NEEDS:
                raise ValueError(f"{number}: 'needs: {needs}' is none of {', '.join(sorted(NEEDS))}")
            continue
        is_fence = line.strip().startswith("```")
        is_fenced ^= is_fence
        is_code = is_fenced or line.startswith("    ")
        if is_code and not is_fence:
            if open_line is not None:
                first, code = open_line
            first, code = (first, code + line.strip()) if open_line is not None else (number, line.strip())
            open_line = (first, code[:-1]) if code.endswith("\\") else None
            begins = BEGINNING.match(code)
            if open_line is None and begins:
                found.append(Command(page, first, begins.group(1), needs, False))
        elif line.strip() and not is_fence:
            needs = None
            for quoted in re.findall(r"`(paceline [a-z]+\b[^`]*)`", line):
                found.append(Command(page, number, quoted, needs, True))
    return found


class Checker:
    def __init__(self, program, folder):
        self.program, self.folder, self.helps, self.done = program, folder, {}, {}
        self.env = {**os.environ, "HOME": str(folder), "PACELINE_CACHE": str(folder / ".cache/paceline"), "COLUMNS": "200"}
        self.usage = subprocess.run([ROOT / "x", "--help"], capture_output=True, text=True).stdout

    def run(self, words, timeout=60):
        return subprocess.run([self.program, *words], cwd=self.folder, env=self.env, capture_output=True, text=True, timeout=timeout,
                              stdin=subprocess.DEVNULL)

    def options_of(self, command):
        if command not in self.helps:
            said = self.run([command, "--help"])
            self.helps[command] = set(re.findall(r"(?<!\S)(--?[a-z][a-z0-9-]*)", said.stdout)) if said.returncode == 0 else None
        return self.helps[command]

    def unknown(self, words):
        """What is no command or no option of it, in a command line behind `paceline`; or None."""
        ends = words.index("--") if "--" in words else len(words)
        options = self.options_of(words[0])
        if options is None:
            return f"'{words[0]}' is no command"
        for before, word in zip(words, words[1:ends]):
            name = word.split("=")[0]
            if before == "--slurm":  # its value is an option of Slurm's
                continue
            if re.match(r"--?[a-z]", word) and name not in options | {"--help"}:
                return f"{name} is not an option of {words[0]}"
        return self.unknown(words[ends + 1:]) if words[ends + 1:] else None

    def fault(self, command):
        """What is wrong with it, or None."""
        first, *rest = command.words
        if first == "./x":
            return None if re.search(rf"\./x {re.escape(rest[0])}\b", self.usage) else f"./x knows no '{rest[0]}'"
        if first != "paceline":
            return self.fault_of_bench(first, rest)
        rest = rest[:rest.index("||")] if "||" in rest else rest  # what follows a failure
        text = re.sub(r"\s>\s*(\S+)$", "", shlex.join(rest).replace("'>'", ">"))
        for pattern, instead in STANDS_FOR:
            text = pattern.sub(instead, text)
        words = [word.replace("~", str(self.folder)) for word in shlex.split(text)]
        wrong = self.unknown(words)
        is_name_alone = command.is_inline and (words[0] not in PLANNED or len(words) == 1)
        needs_another_machine = words[:2] == ["data", "get"] or words[:2] == ["sbatch", "--status"]
        if wrong or command.needs or needs_another_machine or "--help" in words or is_name_alone:
            return wrong
        if words[0] in PLANNED and not {"--plan", "--print"} & set(words):
            # Without timed steps: those of a model for 224 x 224 take longer than all else here.
            untimed = ["--no-calibrate"] if "--no-calibrate" in self.options_of(words[0]) else []
            words[words.index("--") if "--" in words else len(words):0] = ["--plan", *untimed]
        if tuple(words) not in self.done:
            self.done[tuple(words)] = self.fault_of_run(words)
        return self.done[tuple(words)]

    def fault_of_bench(self, program, words):
        source = ROOT / program
        if program.startswith("build/"):
            name = Path(program).name
            source = ROOT / "bench" / f"{name if (ROOT / 'bench' / f'{name}.cc').exists() else name.removeprefix('bench_')}.cc"
        if not source.exists():
            return f"there is no {source.relative_to(ROOT)}"
        text = source.read_text()
        missing = [word for word in words if word.startswith("--") and f'"{word.strip("[]")}"' not in text]
        return f"{missing[0]} is not an option of it" if missing else None

    def fault_of_run(self, words):
        if words[0] == "serve":
            return self.fault_of_server(words if "--port" in words else [*words, "--port", "0"])
        if words[0] == "comm":
            words = [*(words[:words.index("--sizes")] if "--sizes" in words else words), *SMALL_COMM]
        try:
            outcome = self.run(words)
        except subprocess.TimeoutExpired:
            return "still running after a minute; mark what it needs"
        if outcome.returncode != 0:
            return f"exit {outcome.returncode}: {(outcome.stderr or outcome.stdout).strip()[-400:]}"
        return None

    def fault_of_server(self, words):
        server = subprocess.Popen([self.program, *words], cwd=self.folder, env=self.env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        said = server.stdout.readline()
        server.send_signal(signal.SIGINT)
        try:
            said += server.communicate(timeout=60)[0]
        except subprocess.TimeoutExpired:
            server.kill()
            return "does not end at Ctrl-C"
        return None if "http://" in said else f"says no address: {said}"


def png(value):
    """A grey image of 8 x 8 pixels."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress((b"\0" + bytes([value] * 24)) * 8)) + chunk(b"IEND", b""))


def make_data(folder):
    """The data sets' formats at their sizes, all zeros: files with holes, which take no room."""
    for name in [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin", "test_batch_exact1k.bin"]:
        path = folder / "cifar10" / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"")
        os.truncate(path, 3073 * (1000 if "1k" in name else 10000))
    for name, count in (("train", 60000), ("t10k", 100)):
        (folder / "mnist").mkdir(exist_ok=True)
        images, labels = folder / f"mnist/{name}-images-idx3-ubyte", folder / f"mnist/{name}-labels-idx1-ubyte"
        images.write_bytes(struct.pack(">IIII", 2051, count, 28, 28))
        os.truncate(images, 16 + count * 784)
        labels.write_bytes(struct.pack(">II", 2049, count))
        os.truncate(labels, 8 + count)
    for part, count in (("Training", 320), ("Test", 40)):
        for i in range(count):
            path = folder / "images" / part / ("apple" if i % 2 else "pear") / f"{i}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(png(i % 100 + (100 if part == "Test" else 0)))


def make_shards(folder):
    """Shards of two images, under the names that documents use."""
    for name, count in [*((f"train-{i:04}", 2) for i in range(147)), *((f"val-{i:03}", 2) for i in range(7))]:
        with tarfile.open(folder / f"{name}.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
            for i in range(count):
                for ending, data in (("png", png(90 * i)), ("cls", str(i).encode())):
                    member = tarfile.TarInfo(f"{i}.{ending}")
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))


def make_place(checker):
    """Data, runs, a table and a measurement of another program, under the names that documents use."""
    folder = checker.folder
    make_data(folder)
    make_shards(folder)
    (folder / "recipes").symlink_to(ROOT / "recipes")
    (folder / "data").mkdir()
    (folder / "data/cifar-10-batches-bin").symlink_to(folder / "cifar10")
    small = ["--model", "mnist-cnn", "--data", "mnist:mnist", "--no-pin"]
    outcomes = [checker.run(["train", *small, "--local-batch", "16", "--steps", "2", "--measured-kernels", "--out", "paceline-out/train-1"]),
                *(checker.run(["scale", *small, "--workers", "1,2", "--batches", "16", "--repeats", "2", "--window-steps", "8",
                               "--window-seconds", "0.1", "--measure-again", "0", "--out", f"paceline-out/{out}"])
                  for out in ("study", "after")),  # `compare` of the second finds the first
                checker.run(["comm", "--workers", "2", *SMALL_COMM, "--out", "paceline-out/comm-1"])]
    for outcome in outcomes:
        if outcome.returncode != 0:
            sys.exit(f"FAILED: what the documents' commands read cannot be made: {outcome.stderr}")
    for name, source in (("before", "study"), ("train-2", "train-1")):
        subprocess.run(["cp", "-r", folder / "paceline-out" / source, folder / "paceline-out" / name], check=True)
    (folder / "table.csv").write_text("run,workers,local_batch,time_s,time_of,rate_per_s\nalone,1,32,0.1,step,320\ntwo,2,32,0.11,step,581.8\n")
    for workers in (1, 2):
        rank = {"host": 0, "device": "Example", "threads": 1, "samples": 32, "batches": 1, "ready_s": [[0.04] * 3], "end_s": [[0.05] * 3],
                **{f"{what}_s": [seconds] * 3 for what, seconds in {
                    "step": 0.1, "data": 0.01, "forward": 0.02, "buffers": 0, "backward": 0.04, "last_backward": 0.04, "exposed": 0.01, "late": 0.005}.items()}}
        (folder / f"n{workers}.json").write_text(json.dumps({
            "schema": "paceline-ddp-1", "workers": workers, "hosts": 1, "warmup": 3, "every": 1, "notes": [], "steps": [3, 4, 5], "bucket_bytes": [4000],
            "ranks": [{"rank": k, **rank} for k in range(workers)],
            "row": {"run": f"n{workers}", "workers": str(workers), "local_batch": "32", "time_s": "0.1", "time_of": "step"}}))
    (folder / "trace.json").write_text('{"traceEvents": [' + ", ".join(
        f'{{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#{i}", "pid": 1, "tid": 1, "ts": {i * 1000}, "dur": 990}}'
        for i in range(4)) + "]}")


def check_itself(checker):
    """Each line of a made-up page but the last two is wrong, and has to be found."""
    page = """
    paceline train --no-such-option
    paceline train --epochs many
    paceline nothing --help
    paceline launch -n 2 -- train --no-such-option ...
    paceline check no-such-table.csv
    ./x no-such-word
    bench/step_vs_torch.py PEER --no-such-option
    bench/no_such_script.py
    paceline train --epochs 3      # a remark
    paceline train --epochs 3 ...
"""
    found = [command.line for command in commands_of("made up", page) if checker.fault(command)]
    if found != list(range(2, 10)):
        sys.exit(f"FAILED: of a page that is wrong in lines 2 to 9 the check finds {found}")
    try:
        commands_of("made up", "<!-- needs: luck -->\n")
        sys.exit("FAILED: an unknown marker is let through")
    except ValueError:
        pass


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, required=True)
    parser.add_argument("documents", nargs="*", type=Path, default=[ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")),
                                                                               *sorted((ROOT / "results" / "log").glob("*.md"))])
    parser.add_argument("--times", action="store_true", help="print what took longer than half a second")
    options = parser.parse_args()
    failures, count = [], 0
    with tempfile.TemporaryDirectory() as name:
        checker = Checker(options.program.resolve(), Path(name))
        make_place(checker)
        check_itself(checker)
        for document in options.documents:
            page = document.resolve().relative_to(ROOT).as_posix()
            try:
                commands = commands_of(page, document.read_text())
            except ValueError as wrong:
                failures.append(f"{page}:{wrong}")
                continue
            for command in commands:
                count += 1
                begin = time.monotonic()
                if page.startswith(("docs/results", "results/")):
                    command.needs = "hours"
                fault = checker.fault(command)
                if options.times and time.monotonic() - begin > 0.5:
                    print(f"{time.monotonic() - begin:.1f} s  {page}:{command.line}: {command.text}")
                if fault:
                    failures.append(f"{page}:{command.line}: {command.text}: {fault}")
    print("\n".join(failures) if failures else f"commands: {count} of the documents are right; {len(checker.done)} different ones ran")
    sys.exit(1 if failures or count < 50 else 0)


if __name__ == "__main__":
    main()
