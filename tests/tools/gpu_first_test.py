#!/usr/bin/env python3
"""tools/gpu_first over made-up programs: what it says when all is well, and that a fault in any step leaves the others their say."""

import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

TOOLS = Path(__file__).resolve().parents[2] / "tools"
sys.dont_write_bytecode = True
sys.path.insert(0, str(TOOLS))
import gpu_processes  # noqa: E402
import gpu_results  # noqa: E402


def load(name):  # a script without .py
    loader = SourceFileLoader(name, str(TOOLS / name))
    module = module_from_spec(spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


gpu_first = load("gpu_first")
STEPS = gpu_first.STEPS

RECORD = {
    "schema": "paceline-record-1", "steps": [{"update": i + 1, "loss": 2.3 - 0.01 * i} for i in range(60)],
    "window": {"samples": 1000, "wall_s": 0.5, "steps": 10}, "ranks": [{"wall_s": 2.0, "phases_s": {"forward": 2.0}}],
    "epochs": [{"test_accuracy": 0.99, "seconds": 1}], "communication": {"communicator": "nccl"}, "data": {"images_on": "device"},
    "memory": {"device": {"plan_bytes": 10**9, "available_bytes": 79 * 10**9 + 5 * 10**8,
                          "use": {"total_bytes": 80 * 10**9, "used_bytes": 9 * 10**8, "engines_bytes": 3 * 10**8}}},
    "gpus": [{"course": {"sm_mhz": [1900, None, 1980], "watts": [], "celsius": [40]}, "held_back": {}}]}
WRONG_RECORD = {**RECORD, "ranks": [{"wall_s": 2.0, "phases_s": {"forward": 1.9}}], "epochs": [{"test_accuracy": 0.5, "seconds": 1}],
                "memory": {"device": {"plan_bytes": 10**9, "available_bytes": 79 * 10**9,
                                      "use": {"total_bytes": 80 * 10**9, "used_bytes": 21 * 10**8, "engines_bytes": 0}}}}
ENGINES = {"engines": 35, "engines_with_other_bits": 0, "engines_not_captured": 0,
           "worst_f32": {"error_by_largest": 1e-7, "at": "x"}, "worst_bf16": {"error_by_largest": 0.004, "at": "x"}}
PROBE = {"device": {"name": "a GPU", "visible_gpus": 2, "cuda_of_driver": "13.0", "free_bytes": 79 * 10**9, "memory_bytes": 80 * 10**9},
         "first": ENGINES, "more": ENGINES, "copies": {"gb_per_s": {"pinned to device": 50.0}},
         "launches": {"own kernel": {"host_us": 2.0, "device_us": 1.5}},
         "times": {"problems": {"conv": {"engines": [{"us": 20.0}, {"us": 10.0}]}}},
         "large": {"conv": {"error_by_largest_of_last_sample": 0.001}}, "plans": {"taken": {"problems": 35}},
         "libraries": {"cudnn": {"version": "9.19.0"}, "plans_for_described_h100": {"conv": []}}}
WRONG_PROBE = {part: {"failed": {"conv": "no engine qualifies"}} for part in PROBE} | {
    "first": {**ENGINES, "engines_with_other_bits": 1}, "more": {**ENGINES, "worst_f32": {"error_by_largest": 1e-3, "at": "x"}},
    "large": {"conv": {"error_by_largest_of_last_sample": 1.0}}, "times": {"problems": {}}}

# One script stands for all programs; its name says which. FAULTS holds the steps that go wrong, KIND how.
PROGRAM = r"""#!/bin/sh
here=$(dirname "$0") name=$(basename "$0") wrong=
case " $FAULTS " in *" $PACELINE_GPU_STEP "*)
  case $KIND in
    crash) echo "[ RUN      ] CudaEngine.A0"; kill -SEGV $$ ;;
    hang) echo waiting; sleep 60 & wait ;;
    library) echo "paceline: --device cuda: cuDNN is not there (libcudnn.so.9)" >&2; exit 4 ;;
    wrong) wrong=wrong- ;;
  esac ;;
esac
value() { option=$1; shift; while [ $# -gt 0 ]; do [ "$1" = "$option" ] && { echo "$2"; return; }; shift; done; }
case $name in
  paceline)
    case "$1 $*" in
      doctor*) echo "GPU 0: made up"; [ -z "$wrong" ] || { echo "error: no doctor"; exit 1; } ;;
      comm*) echo "busbw 400 GB/s" ;;
      *200000*) [ -z "$wrong" ] || { echo trained; exit 0; }; echo "memory: the plan is 90 GB and 79 GB are free"; exit 4 ;;
      *)
        out=$(value --out "$@"); mkdir -p "$out"
        bits=same; [ -z "$wrong" ] || bits=$$
        echo $bits >"$out/1.safetensors"; echo $bits >"$out/2.safetensors"
        cp "$here/${wrong}record.json" "$out/record.json" ;;
    esac ;;
  test_engine)
    case "$*" in
      *--gtest_list_tests*Kernels*|*Kernels*--gtest_list_tests*) printf 'CudaKernelsOnDevice.\n  A\n  ASmall\n  B\n  BSmall\n' ;;
      *--gtest_list_tests*) printf 'CudaEngine.\n'; for i in 0 1 2 3 4 5 6 7 8 9 10 11; do echo "  A$i"; done ;;
      *)
        echo "device: GPU 0 (made up)"
        for test in $(echo "${1#--gtest_filter=}" | tr : ' '); do
          echo "[ RUN      ] $test"
          if [ -n "$wrong" ]; then printf 'engine_test.cc:7: Failure\nbits differ\n[  FAILED  ] %s (1 ms)\n' "$test"
          else echo "[       OK ] $test (1 ms)"; fi
        done
        [ -z "$wrong" ] ;;
    esac ;;
  compute-sanitizer) echo "device: GPU 0 (made up)"; [ -z "$wrong" ] && printf 'ERROR SUMMARY: 0 errors\nRACECHECK SUMMARY: 0 hazards\n' || echo "ERROR SUMMARY: 3 errors" ;;
  nvidia-smi) printf 'GPU 0: made up\nGPU 1: made up\n' ;;
  cuda_probe) cp "$here/$wrong$1.json" "$2"; [ -z "$wrong" ] ;;
  bench_train_step)
    [ -z "$wrong" ] || exit 0
    echo "conv1     forward     1.000 ms  backward     2.000 ms" >&2
    echo '{"steps": "captured sections", "images_per_s": 1000.0, "host_ms": 0.1, "step_ms": 5.0, "update_ms": 0.5, "steps_s": [1]}' ;;
  parity_run) ;;
  python | python3)
    case "$*" in
      *"import torch"*) echo "UserWarning: pynvml is deprecated" >&2; echo "GPU 2.11" ;;
      *torch_peer*) [ -z "$wrong" ] || exit 1
        echo "[W] a warning of a library"
        echo '{"peer": "torch 2.11", "images_per_s": 800.0, "step_ms": 1, "uploaded_step_ms": 1.2}' ;;
      *parity*) [ -z "$wrong" ] && echo agreed || { echo "losses differ"; exit 1; } ;;
    esac ;;
esac
"""


# What the table says of wrong results in each step.
SAYS_OF_WRONG = {
    "start": "no doctor", "kernels": "bits differ", "convolutions": "1 of 35 engines gave other bits", "training": "checkpoints of bf16-1 and",
    "speed": "the ledger holds 0.9500", "peer": "ended with 1", "ops": "no figures", "measured": "no figures", "engine": "bits differ",
    "workers": "the checkpoints of workers-1 and workers-2 differ", "resume": "resumed: the checkpoints", "too_large": "ended with 0, not 4",
    "memory": "took 1.10 GB, more than its plan of 1.00 GB", "fp32": "the ledger holds 0.9500", "sanitizer": "3 errors",
    "launches": "no engine qualifies", "copies": "no engine qualifies", "times": "no convolution has a time", "nccl": "one GPU and two: the|no engine qualifies",
    "mnist": "accuracy is 0.5", "parity": "ended with 1", "more": "more than 0.0001", "large": "the last sample is wrong",
    "plans": "no engine qualifies", "libraries": "no engine qualifies"}


class Machine:
    """Made-up programs in a folder, and what the tool needs to run on them."""

    def __init__(self, folder):
        self.folder = Path(folder)
        for name in ("paceline", "test_engine", "cuda_probe", "bench_train_step", "parity_run", "python", "python3", "nvidia-smi", "compute-sanitizer"):
            (self.folder / name).write_text(PROGRAM)
            (self.folder / name).chmod(0o755)
        for prefix, record, parts in (("", RECORD, PROBE), ("wrong-", WRONG_RECORD, WRONG_PROBE)):
            (self.folder / f"{prefix}record.json").write_text(json.dumps(record))
            for part, found in parts.items():
                (self.folder / f"{prefix}{part}.json").write_text(json.dumps(found))

    def run(self, steps=STEPS, faults=(), kind="", within=600, device="cuda", quick=False):
        """The record after all steps; those with a fault have a short limit."""
        out = self.folder / "out"
        (out / "logs").mkdir(parents=True, exist_ok=True)
        settings = SimpleNamespace(device=device, quick=quick, programs=self.folder, mnist="mnist", scratch=self.folder / "scratch",
                                   logs=out / "logs", out=out, shared={})
        record = {"when": "now", "device": device, "seconds": 0, "steps": []}
        steps = [step._replace(limit_s=0.3 if step.name in faults and kind == "hang" else 60) for step in steps]
        path = f"{self.folder}:{os.environ['PATH']}"
        with mock.patch.dict(os.environ, {"FAULTS": " ".join(faults), "KIND": kind, "PATH": path}), \
                mock.patch.object(sys, "executable", str(self.folder / "python")), mock.patch.object(gpu_first, "AGAIN_S", 0.1 if kind == "hang" else 60), \
                mock.patch.object(gpu_results, "DEBIANS_PYTHON", str(self.folder / "python")), \
                mock.patch("builtins.print"):
            gpu_first.run_all(steps, settings, record, time.monotonic() + within)
        return record


def only(*names):
    return [step for step in STEPS if step.name in names]


class GpuFirst(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.machine = Machine(folder.name)

    def outcomes(self, record):
        return {row["name"]: row["outcome"] for row in record["steps"]}

    def test_where_all_is_well_every_step_passes_with_a_sentence(self):
        record = self.machine.run()
        self.assertEqual(self.outcomes(record), {step.name: "passed" for step in STEPS}, gpu_first.table(record))
        for row in record["steps"]:
            self.assertGreater(len(row["said"]), 10, row)
        self.assertEqual(record["speed"], "bf16, batch 512: 2,000 images/s")
        by_name = {row["name"]: row for row in record["steps"]}
        self.assertIn("800 images/s, both with images on the GPU; Paceline / PyTorch 2.50", by_name["peer"]["said"])
        self.assertIn("2.50 [2.50, 2.50] in 2 rounds", by_name["fp32"]["said"])
        self.assertIn("peer fp32 512", by_name["fp32"]["figures"])
        self.assertIn("phases_s", by_name["fp32"]["figures"]["fp32 512"])
        self.assertEqual(by_name["speed"]["figures"]["bf16 512"]["gpu"]["sm_mhz"], 1940)
        self.assertEqual(by_name["kernels"]["figures"]["tests"], 4)
        self.assertEqual(json.loads((self.machine.folder / "out/gpu-first.json").read_text())["steps"], record["steps"])

    def test_both_sides_upload_each_batch_or_neither_does(self):
        (self.machine.folder / "record.json").write_text(json.dumps({**RECORD, "data": {"images_on": "host"}}))
        peer, = self.machine.run(only("peer"))["steps"]
        self.assertIn("426,667 images/s, both upload each batch; Paceline / PyTorch 0.00", peer["said"])

    def test_convolutions_are_timed_on_random_numbers(self):
        """On zeros a product in bf16 was seen 13 % faster."""
        source = (TOOLS.parent / "bench" / "cuda_probe" / "gpu.cc").read_text()
        operands = source.split("Operands::Operands(")[1].split("\n}")[0]
        self.assertIn("random_numbers(", operands)
        self.assertNotIn("fill(", operands)

    def test_without_units_for_bf16_the_speed_is_that_of_fp32(self):
        (self.machine.folder / "device.json").write_text(json.dumps({**PROBE["device"], "precision": "fp32"}))
        record = self.machine.run()
        self.assertEqual(self.outcomes(record), {step.name: "skipped" if step.name == "large" else "passed" for step in STEPS})
        self.assertEqual(record["speed"], "fp32, batch 512: 2,000 images/s")
        self.assertNotIn("bf16", " ".join(row["said"] for row in record["steps"] if row["name"] in ("training", "speed", "peer", "fp32")))

    def check_faults(self, kind, says):
        """A fault in every second step, then in the others: each is reported, as `says` of its name, and the healthy ones pass."""
        names = [step.name for step in STEPS]
        for faults in (names[0::2], names[1::2]):
            record = self.machine.run(faults=faults, kind=kind)
            self.assertEqual(list(self.outcomes(record)), names)
            for row in record["steps"]:
                if row["name"] not in faults:
                    # Two steps read what an earlier one has left.
                    self.assertEqual(row["outcome"], "passed", row)
                    continue
                no_torch = kind == "library" and row["name"] == "peer"
                self.assertEqual(row["outcome"], "skipped" if no_torch else "failed", row)
                self.assertRegex(row["said"], "no PyTorch" if no_torch else says(row["name"]), row)
            text = (self.machine.folder / "out/gpu-first.txt").read_text()
            self.assertRegex(text, rf"\n{len(names) - len(faults)} passed, ")

    def test_a_crash_in_any_step(self):
        self.check_faults("crash", lambda name: r"signal 11 \(SIGSEGV\)")

    def test_a_hang_in_any_step(self):
        self.check_faults("hang", lambda name: "did not end within|time was over")

    def test_a_missing_library_in_any_step(self):
        self.check_faults("library", lambda name: "cuDNN is not there")

    def test_wrong_results_in_any_step(self):
        self.check_faults("wrong", SAYS_OF_WRONG.get)

    def test_a_fault_in_one_part_of_a_step_leaves_the_figures_of_the_others(self):
        record = self.machine.run(only("speed"), ["speed"], "wrong")
        self.assertEqual(record["speed"], "bf16, batch 512: 2,000 images/s")  # though its ledger does not close, and the bench says nothing
        script = self.machine.folder / "paceline"
        script.write_text(script.read_text().replace('out=$(value --out "$@"); mkdir', 'echo "no training"; exit 4; mkdir'))
        record = self.machine.run(only("speed"))
        self.assertEqual(record["speed"], "bf16, batch 512: 1,000 images/s (engine alone)")
        self.assertIn("no training", record["steps"][0]["said"])
        self.assertIn("launch by launch 1,000", record["steps"][0]["said"])

    def test_the_command_that_failed_runs_again_with_more_words_once_the_speed_stands(self):
        record = self.machine.run(only("kernels", "speed", "engine"), ["kernels"], "crash")
        rows = {row["name"]: row for row in record["steps"]}
        self.assertRegex(rows["kernels"]["again"], "^again, each launch waited for: .*signal 11")
        again = (self.machine.folder / "out" / rows["kernels"]["log_again"])
        self.assertGreater(again.stat().st_mtime_ns, (self.machine.folder / "out/logs/speed.log").stat().st_mtime_ns)
        self.assertEqual(self.outcomes(record), {"kernels": "failed", "speed": "passed", "engine": "passed"})

    def test_a_training_that_failed_runs_again_into_a_folder_of_its_own(self):
        script = self.machine.folder / "paceline"
        script.write_text(script.read_text().replace('mkdir -p "$out"', '[ ! -e "$out" ] || { echo "holds another run"; exit 2; }; '
                                                     'mkdir -p "$out"; echo "a fault"; exit 4'))
        (row,) = self.machine.run(only("workers"))["steps"]
        self.assertIn("a fault (ended with 4", row["said"])
        self.assertIn("a fault (ended with 4", row["again"])

    def test_what_ran_too_long_does_not_run_again(self):
        (row,) = self.machine.run(only("workers"), ["workers"], "hang")["steps"]
        self.assertNotIn("again", row)

    def test_records_outlive_the_runs(self):
        self.machine.run(only("workers"))
        names = sorted(path.name for path in (self.machine.folder / "out/records").iterdir())
        self.assertEqual(names, ["workers-workers-1-record.json", "workers-workers-2-record.json"])

    def test_tests_that_share_a_process_that_is_too_slow_are_no_fault(self):
        (self.machine.folder / "test_engine").write_text(r"""#!/bin/sh
[ "$2" = --gtest_list_tests ] && { printf 'S.\n  a\n  b\n  c\n  d\n'; exit 0; }
echo "device: GPU 0 (made up)"
for test in $(echo "${1#--gtest_filter=}" | tr : ' '); do echo "[ RUN      ] $test"; sleep 3; echo "[       OK ] $test (1 ms)"; done
""")
        settings = SimpleNamespace(device="cuda", quick=False, programs=self.machine.folder, scratch=self.machine.folder / "scratch",
                                   logs=self.machine.folder, shared={})
        self.assertEqual(gpu_processes.Run(settings, "engine", 60).tests("S*", group=4, limit_s=9), 4)

    def test_asked_to_end_it_leaves_what_it_found_and_no_process(self):
        with tempfile.TemporaryDirectory() as work:
            tool = subprocess.Popen([sys.executable, TOOLS / "gpu_first", "--programs", self.machine.folder, "--only", "workers", "resume"],
                                    stdout=subprocess.PIPE, text=True, cwd=work, env={**os.environ, "FAULTS": "resume", "KIND": "hang"})
            self.assertIn("workers      passed", tool.stdout.readline())
            time.sleep(0.5)
            tool.send_signal(signal.SIGTERM)
            output, _ = tool.communicate(timeout=60)
            self.assertEqual(tool.returncode, 143)
            self.assertIn("1 passed, 0 failed", output)
            self.assertTrue((Path(work) / "gpu-first-results.tar.gz").is_file())

    def test_after_a_lost_gpu_the_tests_behind_it_run_in_a_new_process(self):
        (self.machine.folder / "test_engine").write_text(r"""#!/bin/sh
[ "$2" = --gtest_list_tests ] && { printf 'S.\n  a\n  b\n  c\n  d\n'; exit 0; }
echo "device: GPU 0 (made up)"
lost=
for test in $(echo "${1#--gtest_filter=}" | tr : ' '); do
  echo "[ RUN      ] $test"
  [ $test = S.b ] && lost=1
  if [ -n "$lost" ]; then echo "x.cc:1: Failure"; echo "an illegal memory access was encountered"; echo "[  FAILED  ] $test (1 ms)"
  else echo "[       OK ] $test (1 ms)"; fi
done
[ -z "$lost" ]
""")
        (row,) = self.machine.run(only("engine"))["steps"]
        self.assertEqual(row["outcome"], "failed")
        self.assertEqual(row["figures"]["tests"], 3)  # a, and c and d in a process of their own
        self.assertEqual(list(row["figures"]["failed"]), ["S.b"])
        self.assertIn("illegal memory access", row["said"])

    def test_tests_that_saw_no_gpu_are_no_success(self):
        script = (self.machine.folder / "test_engine")
        script.write_text(script.read_text().replace('echo "device: GPU 0 (made up)"', ":"))
        (row,) = self.machine.run(only("engine"))["steps"]
        self.assertIn("none says that it ran on a GPU", row["said"])

    def test_on_the_processor_steps_that_need_a_gpu_are_named_with_the_reason(self):
        record = self.machine.run(device="cuda-on-host", quick=True)
        rows = {row["name"]: row for row in record["steps"]}
        for name in ("kernels", "convolutions", "peer", "memory", "sanitizer", "launches", "copies", "times", "nccl", "more", "large",
                     "plans", "mnist"):
            self.assertEqual(rows[name]["outcome"], "skipped", rows[name])
            self.assertTrue(rows[name]["said"], name)

    def test_what_is_not_reached_is_listed_with_the_command(self):
        record = self.machine.run(within=2)
        self.assertEqual(set(self.outcomes(record).values()), {"skipped"})
        self.assertEqual(record["steps"][4]["said"], "the time was over: --only speed runs it")

    def test_the_speed_stands_within_three_minutes_even_if_each_step_takes_its_limit(self):
        names = [step.name for step in STEPS]
        before = STEPS[:names.index("speed") + 1]
        self.assertLessEqual(sum(step.limit_s for step in before), 180)
        self.assertLessEqual(sum(step.host_limit_s for step in STEPS), 700)

    def test_by_its_command_line(self):
        with tempfile.TemporaryDirectory() as work:
            run = lambda *words: subprocess.run([sys.executable, TOOLS / "gpu_first", *words], capture_output=True, text=True, cwd=work)
            none = run("--programs", work)
            self.assertEqual(none.returncode, 2)
            self.assertIn("there is no program", none.stderr)
            (Path(work) / "file").write_text("")
            no_folder = run("--programs", self.machine.folder, "--out", "file")
            self.assertEqual(no_folder.returncode, 2)
            self.assertIn("cannot be made", no_folder.stderr)
            done = run("--programs", self.machine.folder, "--only", "workers", "resume", "--out", "found")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("2 passed, 0 failed, 0 skipped", done.stdout)
            with tarfile.open(Path(work) / "found.tar.gz") as archive:
                self.assertIn("found/logs/workers.log", archive.getnames())
                self.assertIn("found/gpu-first.json", archive.getnames())

    def test_a_program_that_hangs_is_ended_with_all_that_it_started(self):
        log = self.machine.folder / "log"
        ended = gpu_processes.end_of(["sh", "-c", "sleep 100 & echo waiting; wait"], 5, self.machine.folder, log)
        self.assertTrue(ended.is_late)
        self.assertLess(ended.seconds, 20)  # and not 100
        self.assertIn("waiting", ended.output)
        self.assertIn("its time was over", log.read_text())


if __name__ == "__main__":
    unittest.main()
