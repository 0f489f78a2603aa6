"""How a step of gpu_first runs programs: each in a process group of its own, with a limit, its whole output in the step's log."""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

# Errors after which CUDA allows a process nothing more (src/engine/cuda/api/cuda.cc, is_sticky).
STICKY = re.compile(r"the GPU is lost to this process|illegal memory access|unspecified launch failure|misaligned address|"
                    r"device-side assert|hardware stack error|illegal instruction|cudaError\w*, (?:214|220|226|7[01]\d|721|810)\)")
# Where programs, CUDA's runtime and cuDNN say more: each launch is waited for, so that the first fault is the one that is named.
DEBUG = {"CUDA_LAUNCH_BLOCKING": "1", "CUDNN_LOGLEVEL_DBG": "2", "CUDNN_LOGDEST_DBG": "stderr", "NCCL_DEBUG": "INFO"}


class Failed(Exception):
    """The step ran and found a fault. `command`: the one that showed it, if it is worth running again: it did not run too long."""

    def __init__(self, text, command=None, environment=None):
        super().__init__(text)
        self.command, self.environment = command, environment


class Skipped(Exception):
    """The step cannot run here; the reason is the text."""


class Ended(NamedTuple):
    code: int
    output: str
    seconds: float
    is_late: bool  # it was ended, since its time was over


def end_of(command, limit_s, folder, log, environment=None):
    """Runs a command for at most `limit_s`, and ends it then with all that it has started."""
    begin = time.monotonic()
    with open(log, "a") as file:
        file.write(f"$ {' '.join(map(str, command))}\n")
        file.flush()
        at = file.tell()
        # A session of its own, so that a program that is too slow ends with its children. The output goes into the file, not
        # through a pipe, which a child that outlives the program would hold open.
        try:
            process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True,
                                       cwd=folder, env={**os.environ, **(environment or {})})
        except OSError as error:
            return Ended(127, f"{command[0]}: {error.strerror}", 0.0, False)
        is_late = False
        try:
            process.wait(max(limit_s, 0.01))
        except subprocess.TimeoutExpired:
            is_late = True
        finally:  # also when this program is asked to end
            code = end_group(process)
    seconds = time.monotonic() - begin
    with open(log, "rb") as file:
        file.seek(at)
        output = file.read().decode(errors="replace")
    with open(log, "a") as file:
        file.write(f"\n-- {'killed: its time was over' if is_late else f'ended with {code}'}, {seconds:.1f} s\n\n")
    return Ended(code, output, seconds, is_late)


def end_group(process):
    """Ends a process with all that it has started. Its exit code; None if the kernel does not let it end."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    try:
        return process.wait(10)
    except subprocess.TimeoutExpired:  # in a call of the driver that nothing interrupts
        return None


def how_it_ended(ended):
    if ended.code is None:
        return f"cannot be ended: it hangs in a call of the kernel since {ended.seconds:.0f} s"
    if ended.is_late:
        return f"did not end within {ended.seconds:.0f} s"
    if ended.code < 0:
        return f"was ended by signal {-ended.code} ({signal.Signals(-ended.code).name})"
    return f"ended with {ended.code}"


def first_fault(output, characters=400):
    """The first failed assertion or error of an output, else its last words."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    for index, line in enumerate(lines):
        if line.endswith(": Failure"):
            return " / ".join(lines[index:index + 4])[:characters]
    for line in lines:
        if re.search(r"\b(errors?|failed|faults?|fatal|refused|cannot|not found|no such|is not there|exception)\b", line, re.I):
            return line[:characters]
    return " / ".join(lines[-3:])[-characters:] or "no output"


def is_broken(ended):
    """Whether a process did not end by itself."""
    return ended.is_late or ended.code is None or ended.code < 0


def short(command):
    return " ".join([Path(str(command[0])).name, *map(str, command[1:])])[:160]


class Run:
    """One step under way: what it may use, and what it has found."""

    def __init__(self, settings, name, limit_s):
        self.settings, self.name = settings, name
        self.device, self.quick, self.shared = settings.device, settings.quick, settings.shared
        self.folder = Path(settings.scratch) / name
        self.folder.mkdir(parents=True, exist_ok=True)
        self.log = Path(settings.logs) / f"{name}.log"
        self.ends = time.monotonic() + limit_s
        self.figures = {}

    @property
    def on_gpu(self):
        return self.device != "cuda-on-host"

    def left(self):
        return self.ends - time.monotonic()

    def needs_gpu(self, why="needs a GPU"):
        if not self.on_gpu:
            raise Skipped(why)

    def program(self, name):
        for path in (self.settings.programs / name, self.settings.programs / "tests" / name, self.settings.programs / "bench" / name):
            if path.is_file():
                return str(path)
        raise Skipped(f"{name} is not in {self.settings.programs}")

    def end_of(self, command, limit_s=None, environment=None):
        environment = {"PACELINE_GPU_STEP": self.name, **(environment or {})}
        return end_of([str(word) for word in command], min(limit_s or self.left(), self.left()), self.folder, self.log, environment)

    def run(self, command, expect=0, limit_s=None, environment=None):
        """The output of a command. Failed when it ends with another code than `expect` (None: any), or not in time."""
        if self.left() <= 0:
            raise Failed(f"its time was over before {short(command)}", command, environment)
        ended = self.end_of(command, limit_s, environment)
        if is_broken(ended) or (expect is not None and ended.code != expect):
            wanted = "" if expect in (0, None) or is_broken(ended) else f", not {expect}"
            self.fail(f"{how_it_ended(ended)}{wanted}", command, ended, environment)
        return ended.output

    def fail(self, what, command, ended, environment=None):
        """Raises Failed: the fault comes first, since a table has little room."""
        again = None if ended.is_late or ended.code is None else [str(word) for word in command]
        raise Failed(f"{first_fault(ended.output)} ({what}: {short(command)})", again, environment)

    def each(self, parts):
        """Runs parts of a step, functions that return sentences, so that one that fails takes nothing from the others. Returns the
        sentences of those that ran; raises the first Failed, with these sentences behind it, or Skipped if none ran."""
        sentences, failed, skipped = [], None, None
        for part in parts:
            try:
                sentences.append(part())
            except Skipped as reason:
                skipped = reason
            except Failed as reason:
                failed = failed or reason
            except (KeyError, ValueError, OSError) as reason:  # a record or an output of another form
                failed = failed or Failed(f"{type(reason).__name__}: {reason}")
        if failed:
            raise Failed("; ".join([str(failed), *sentences]), failed.command, failed.environment)
        if skipped and not sentences:
            raise skipped
        return "; ".join(sentences)

    def train(self, name, *options, expect=0, device=None):
        """paceline train on the device; the folder of its output."""
        out = self.folder / name
        shutil.rmtree(out, ignore_errors=True)
        self.run([self.program("paceline"), "train", "--device", device or self.device, "--out", out, *options], expect)
        return out

    def record_of(self, folder):
        """The one record below an output folder."""
        for path in sorted(folder.rglob("*.json")):
            content = json.loads(path.read_text())
            # A sweep also leaves records of cells that it skipped.
            if content.get("schema") == "paceline-record-1" and content.get("ranks"):
                return content
        raise Failed(f"{folder.name}: no record was left")

    def same_bits(self, first, second, what):
        """Failed unless the last checkpoints of two output folders are the same bytes."""
        if last_checkpoint(first).read_bytes() != last_checkpoint(second).read_bytes():
            raise Failed(f"{what}: the checkpoints of {first.name} and {second.name} differ")

    def tests(self, suites, group, limit_s):
        """Runs tests of test_engine in processes of `group`. What follows a test that crashes, hangs or loses the GPU runs in a new
        process. Returns how many passed; Failed names the tests that did not, with the first assertion."""
        program = self.program("test_engine")
        names = test_names(self.run([program, f"--gtest_filter={suites}", "--gtest_list_tests"]))
        if not names:
            raise Skipped(f"test_engine has no test {suites}")
        results, failed, saw_gpu, at, alone, again = {}, {}, False, 0, False, None
        while at < len(names) and self.left() > 1:
            part = names[at:at + (1 if alone else group)]
            line = [program, f"--gtest_filter={':'.join(part)}"]
            ended = self.end_of(line, limit_s)
            said = outcomes(ended.output)
            saw_gpu = saw_gpu or re.search(r"^device: GPU \d+", ended.output, re.M) is not None
            bad = [name for name, outcome in said.items() if outcome in ("FAILED", "RUN")]
            if ended.is_late and bad and bad[0] != part[0] and said[bad[0]] == "RUN":
                # The time of the process may have been over, not that of the test: it runs again, alone.
                results.update({name: outcome for name, outcome in said.items() if name != bad[0]})
                at, alone = names.index(bad[0]), True
                continue
            results.update(said)
            ends_process = is_broken(ended) or STICKY.search(ended.output) is not None
            if bad:
                again = again or (None if ended.is_late else line)
                failed[bad[0]] = first_fault(ended.output) + (f" ({how_it_ended(ended)})" if is_broken(ended) else "")
                # Of a process that has lost its GPU the first test that failed says what happened.
                failed.update({name: "failed too" for name in ([] if ends_process else bad[1:])})
            elif ended.code != 0 or not said:
                failed[part[-1]] = f"{first_fault(ended.output)} (the process {how_it_ended(ended)})"
            at = names.index(bad[0]) + 1 if bad and ends_process else at + len(part)
            alone = False
        count = {outcome: sum(seen == outcome for seen in results.values()) for outcome in ("OK", "SKIPPED")}
        self.figures.update(tests=count["OK"], skipped=count["SKIPPED"], failed=failed, not_reached=len(names) - at)
        if failed:
            name, why = next(iter(failed.items()))
            raise Failed(f"{name}: {why}; {len(failed)} of {len(names)} failed", again)
        if count["OK"] == 0:
            raise Skipped(f"no test ran, {count['SKIPPED']} were skipped")
        # Without this line a GPU that the tests did not find would look like success.
        if self.on_gpu and not saw_gpu:
            raise Failed(f"{count['OK']} tests passed, but none says that it ran on a GPU")
        return count["OK"]

    def not_reached(self):
        """For the end of a sentence about tests: how many there was no time for."""
        count = self.figures.get("not_reached", 0)
        return f"; no time for {count} more" if count else ""


def last_checkpoint(folder):
    found = sorted(folder.rglob("*.safetensors"), key=lambda path: (path.stat().st_mtime_ns, path.name))
    if not found:
        raise Failed(f"{folder.name}: no checkpoint was left")
    return found[-1]


def test_names(listing):
    """Full names of the tests in the output of --gtest_list_tests."""
    names, suite = [], ""
    for line in listing.splitlines():
        line = line.split("#")[0].rstrip()
        if line.endswith(".") and not line.startswith(" "):
            suite = line
        elif line.startswith("  ") and suite:
            names.append(suite + line.strip())
    return names


def outcomes(output):
    """What each test came to, in the order of running: OK, FAILED, SKIPPED, or RUN where it did not end."""
    found = {}
    for outcome, name in re.findall(r"^\[ +(RUN|OK|FAILED|SKIPPED) +\] ([^\s,(]+)(?: \(\d+ ms\)|, where.*)?$", output, re.M):
        if outcome == "RUN" or name in found:
            found[name] = found[name] if found.get(name) not in (None, "RUN") else outcome
    return found
