#!/usr/bin/python3
"""share/paceline/paceline_ddp.py: what it makes of ranks' steps, what it refuses, and its table beside `check`. Skipped without PyTorch.

    paceline_ddp_test.py --program build/release/paceline [--long]

With --long several processes of PyTorch (gloo) train under it: gradients have the bits of DistributedDataParallel, times
are the profiler's, and ranks that die or fail hold nobody up.
"""
import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

try:
    import torch
    import torch.distributed as dist
    from torch import nn
except ImportError as error:
    print(f"skipped: PyTorch is not there ({error}); on Debian: apt-get install python3-torch")
    sys.exit(77)
if not dist.is_available():
    print("skipped: this PyTorch has no torch.distributed")
    sys.exit(77)

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "share/paceline"))
sys.dont_write_bytecode = True
import paceline_ddp  # noqa: E402
from paceline_ddp import Measured  # noqa: E402

PROGRAM = None


def row(step, begin=0.0, samples=4, sizes=(800, 80), late=0.0):
    """A step of 100 ms: 5 of data, 30 + 1 + 40 of work; bucket 0 is posted after 20, bucket 1 after 40, each moves for 15 ms
    after the last rank has posted it. `begin`: how much earlier than the last rank this one posts."""
    ends = (0.020 + begin + 0.015, 0.040 + begin + 0.015)
    return {"step": step, "samples": samples, "batches": 1, "step_s": 0.1, "data_s": 0.005, "forward_s": 0.03, "buffers_s": late,
            "backward_s": 0.04, "last_backward_s": 0.04, "exposed_s": ends[1] - 0.04, "ready_s": [0.02, 0.04], "end_s": list(ends),
            "bytes": list(sizes)}


def rank(number, rows, seen=10, host="a", every=1):
    return {"rank": number, "host": host, "device": "Example", "threads": 1, "steps_seen": seen, "every": every, "without_backward": 0, "rows": rows}


class Columns(unittest.TestCase):
    def test_waiting_is_what_takes_longer_than_on_the_last_rank(self):
        run = paceline_ddp.run_of([rank(0, [row(2, 0.010, late=0.002)]), rank(1, [row(2, late=0.0005)])], 2, 2)
        # Rank 0 waits from 40 to 65 ms: of that the first bucket moves until 45, the second from 50.
        self.assertEqual(run["ranks"][0]["exposed_s"], [0.025])
        self.assertAlmostEqual(run["ranks"][0]["late_s"][0], 0.005 + 0.0015)
        self.assertAlmostEqual(run["ranks"][1]["late_s"][0], 0)
        cells = paceline_ddp.row_of(run, "host")
        self.assertEqual(float(cells["time_s"]), 0.1)
        self.assertAlmostEqual(float(cells["compute_s"]), 0.07)
        self.assertAlmostEqual(float(cells["communication_s"]), (0.025 + 0.002 + 0.015 + 0.0005) / 2)
        self.assertAlmostEqual(float(cells["late_peer_s"]), 0.0065 / 2)
        self.assertAlmostEqual(float(cells["transfer_s"]), (0.025 + 0.002 + 0.015 + 0.0005 - 0.0065) / 2)
        self.assertAlmostEqual(float(cells["other_s"]), 0.1 - 0.07 - 0.02125 - 0.005)
        self.assertEqual((cells["global_batch"], cells["local_batch"], cells["message_bytes"]), (8, 4, 880))
        self.assertAlmostEqual(float(cells["rate_per_s"]), 80)

    def test_only_steps_of_one_kind_that_all_ranks_have(self):
        first = [row(2, sizes=(880,)), row(3), row(4), row(5), row(6, samples=1)]
        run = paceline_ddp.run_of([rank(0, first + [row(7)]), rank(1, first)], 2, 2)
        self.assertEqual(run["steps"], [3, 4, 5])
        self.assertIn("2 steps of another batch or other buckets are left out", run["notes"])
        thinned = paceline_ddp.run_of([rank(0, first[:-1], every=2), rank(1, first)], 2, 2)
        self.assertEqual(thinned["steps"], [4])
        self.assertIn("one step of 2 is kept", " ".join(thinned["notes"]))

    def test_a_rank_that_is_missing_is_named(self):
        run = paceline_ddp.run_of([rank(0, [row(2)])], 3, 2)
        self.assertIn("rank 1, 2 gave no steps", run["notes"][0])
        cells = paceline_ddp.row_of(run, "host")
        self.assertEqual((cells["workers"], cells["global_batch"], "late_peer_s" in cells), (3, None, False))
        self.assertIsNone(paceline_ddp.run_of([rank(0, [row(2)]), rank(1, [])], 2, 2))

    def test_uneven_ranks_have_no_one_local_batch(self):
        run = paceline_ddp.run_of([rank(0, [row(2)]), rank(1, [row(2, samples=6)], seen=9, host="b")], 2, 0)
        cells = paceline_ddp.row_of(run, "host")
        self.assertEqual((cells["local_batch"], cells["global_batch"], cells["nodes"]), (None, 10, 2))
        self.assertIn("different numbers of steps: 9 to 10", run["notes"][0])


class Event:
    """A CUDA event, whose time is over where a test says so."""
    now, made, synchronized, is_over = 0.0, 0, 0, False

    def __init__(self, enable_timing):
        Event.made += 1

    def record(self, stream):
        Event.now += 1.0
        self.at = Event.now

    def elapsed_time(self, other):
        return other.at - self.at  # ms

    def query(self):
        return Event.is_over

    def synchronize(self):
        Event.synchronized += 1


class Steps(unittest.TestCase):
    """One process that is a group of its own."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        dist.init_process_group("gloo", rank=0, world_size=1, init_method=f"file://{cls.folder.name}/store")
        torch.set_num_threads(1)

    @classmethod
    def tearDownClass(cls):
        dist.destroy_process_group()
        cls.folder.cleanup()

    def model(self, name="run", **settings):
        self.out = Path(self.folder.name, name)
        return Measured(nn.Linear(3, 2), out=self.out, **{"warmup": 1, **settings})

    def run_file(self, model):
        model.finish()
        return json.loads(self.out.with_suffix(".json").read_text())

    def train(self, model, batches, at_last=lambda: None):
        for x in model.steps(batches):
            model(x).sum().backward()
        at_last()

    def test_parts_are_within_the_step(self):
        model = self.model()
        self.train(model, [torch.randn(5, 3)] * 6)
        run = self.run_file(model)
        (only,) = run["ranks"]
        self.assertEqual((run["steps"], only["samples"], run["bucket_bytes"]), ([1, 2, 3, 4, 5], 5, [32]))
        for k in range(5):
            parts = sum(only[name][k] for name in ("data_s", "forward_s", "buffers_s", "backward_s", "exposed_s"))
            self.assertLess(parts, only["step_s"][k])
            self.assertLess(only["ready_s"][0][k], only["end_s"][0][k])
            self.assertGreater(only["forward_s"][k], 0)

    def test_steps_are_the_same_beside_its_table(self):
        model = self.model("here", facts={"run": "a", "setting.precision": "fp32, mixed"})
        self.train(model, [torch.randn(5, 3)] * 6)
        self.run_file(model)
        imported = []
        for ending in ("csv", "json"):
            done = subprocess.run([PROGRAM, "check", self.out.with_suffix(f".{ending}")], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("0 errors, 0 warnings", done.stdout)
        imported = subprocess.run([PROGRAM, "import", self.out.with_suffix(".json")], capture_output=True, text=True)
        self.assertEqual(imported.returncode, 0, imported.stderr)
        tables = [dict(zip(*list(paceline_rows(text))[:2])) for text in (imported.stdout, self.out.with_suffix(".csv").read_text())]
        self.assertEqual(*tables)
        self.assertEqual(tables[0]["setting.precision"], "fp32, mixed")

    def test_no_sync_joins_batches_to_a_step(self):
        model = self.model(warmup=0)
        for k, x in enumerate(model.steps([torch.randn(2, 3)] * 8)):
            if k % 4 < 3:
                with model.no_sync():
                    model(x).sum().backward()
            else:
                model(x).sum().backward()
        run = self.run_file(model)
        self.assertEqual((run["steps"], run["ranks"][0]["batches"], run["ranks"][0]["samples"]), ([0, 1], 4, 8))
        self.assertEqual(run["row"]["setting.accumulated_batches"], "4")
        self.assertGreater(run["ranks"][0]["backward_s"][0], run["ranks"][0]["last_backward_s"][0])

    def test_a_loop_that_is_left_keeps_its_whole_steps(self):
        model = self.model(warmup=0)
        for k, x in enumerate(model.steps([torch.randn(2, 3)] * 8)):
            model(x).sum().backward()
            if k == 3:
                break
        with self.assertRaises(ZeroDivisionError):
            for x in model.steps([torch.randn(2, 3)] * 8):
                model(x).sum().backward()
                1 / (len(model._pending + model._rows) < 5)
        self.train(model, [torch.randn(2, 3)] * 2)
        self.assertEqual(self.run_file(model)["steps"], list(range(len(self.run_file(model)["steps"]))))
        self.assertGreaterEqual(len(self.run_file(model)["steps"]), 6)

    def test_long_runs_keep_every_nth_step(self):
        most, paceline_ddp.MOST_STEPS = paceline_ddp.MOST_STEPS, 8
        try:
            model = self.model()
            self.train(model, [torch.randn(2, 3)] * 30)
            self.assertEqual(self.run_file(model)["steps"], [1, 5, 9, 13, 17, 21, 25, 29])
        finally:
            paceline_ddp.MOST_STEPS = most

    def test_evaluation_is_no_step(self):
        model = self.model(warmup=0)
        self.train(model, [torch.randn(2, 3)] * 2)
        with torch.no_grad():
            model(torch.randn(2, 3))
        model(torch.randn(2, 3)).sum().backward()
        self.assertEqual(self.run_file(model)["steps"], [0, 1])

    def test_a_hook_of_the_trainer_is_timed_in_its_place(self):
        model, calls = self.model(warmup=0), []

        def hook(state, bucket):
            calls.append(state)
            future = torch.futures.Future()
            future.set_result(bucket.buffer() * 3)
            return future
        model.register_comm_hook("mine", hook)
        for x in model.steps([torch.ones(2, 3)]):
            model(x).sum().backward()
        self.assertEqual(calls, ["mine"])
        self.assertTrue(torch.equal(model.module.bias.grad, torch.full((2,), 6.0)))
        self.assertEqual(len(self.run_file(model)["steps"]), 1)
        with self.assertRaisesRegex(RuntimeError, "can only be called once"):
            model.register_comm_hook("again", hook)

    def test_events_are_read_when_they_are_over(self):
        """The clock of GPUs, with events that are made up."""
        event, stream = torch.cuda.Event, torch.cuda.current_stream
        torch.cuda.Event, torch.cuda.current_stream = Event, lambda device: None
        try:
            Event.is_over, Event.made, Event.synchronized = False, 0, 0
            model = self.model(warmup=0)
            model._clock = paceline_ddp.DeviceClock(torch.device("cuda", 0))
            self.train(model, [torch.randn(2, 3)] * 4)
            self.assertEqual((len(model._rows), len(model._pending), Event.synchronized), (0, 4, 0))
            Event.is_over = True
            self.train(model, [torch.randn(2, 3)])
            self.assertEqual((len(model._rows), len(model._pending), Event.synchronized), (5, 0, 0))
            made = Event.made
            self.train(model, [torch.randn(2, 3)] * 4)
            self.assertLess(Event.made - made, 8, "events are used again")
            self.assertEqual(len(set(map(id, model._clock.free))), len(model._clock.free), "each once")
            paceline_ddp.device_name, named = lambda clock: "Example GPU", paceline_ddp.device_name
            try:
                run = self.run_file(model)
            finally:
                paceline_ddp.device_name = named
            self.assertEqual(run["row"]["clock"], "device")
            # Marks of a step: its begin, the batch, forward's two, backward's begin, bucket, sum, two ends; the next begin.
            self.assertEqual([run["ranks"][0][name][0] for name in ("step_s", "data_s", "forward_s")], [0.009, 0.001, 0.001])
        finally:
            torch.cuda.Event, torch.cuda.current_stream = event, stream

    def test_wrong_use_is_a_sentence(self):
        model = self.model(warmup=0)
        for make, says in [(lambda: Measured(nn.Linear(3, 2), warmup=-1), "warmup must be a number of steps, 0 or more, but is -1"),
                           (lambda: Measured(nn.Linear(3, 2), out="nowhere/run"), "there is no folder 'nowhere'"),
                           (lambda: Measured(model), "is already in DistributedDataParallel"),
                           (lambda: [list(model.steps([1])) for _ in model.steps([1])], "within another loop over steps")]:
            with self.assertRaises((ValueError, RuntimeError)) as caught:
                make()
            self.assertIn(says, str(caught.exception))
            self.assertEqual(str(caught.exception).count("\n"), 0)
        for batches, says in [([], "no step was measured: 0 were seen and the first 3 are warm-up"), ([1, 2], "2 batches had no backward")]:
            idle, said = self.model("idle", warmup=3), []
            for _ in idle.steps(batches):
                pass
            say, paceline_ddp.say = paceline_ddp.say, said.append
            try:
                idle.finish()
                idle.finish()
            finally:
                paceline_ddp.say = say
            self.assertEqual(len(said), 1)
            self.assertIn(says, said[0])
            self.assertFalse(self.out.with_suffix(".csv").exists())


def paceline_rows(text):
    import csv
    return csv.reader(line for line in text.splitlines() if not line.startswith("#"))


class LongProcesses(unittest.TestCase):
    """Processes of PyTorch on gloo."""

    def start(self, case, workers, folder):
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
        words = [sys.executable, "-B", "-W", "ignore", ROOT / "tests/tools/ddp_trainer.py", case]
        return [subprocess.Popen([*words, str(rank), str(workers), str(port), folder], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                for rank in range(workers)]

    def run_all(self, case, workers, folder, codes=None):
        processes = self.start(case, workers, folder)
        try:
            said = [process.communicate(timeout=240) for process in processes]
        finally:
            for process in processes:
                process.kill()
        self.assertEqual([process.returncode for process in processes], codes or [0] * workers, said)
        return said

    def test_gradients_have_the_bits_of_ddp(self):
        for workers in (2, 3):
            with tempfile.TemporaryDirectory() as folder:
                self.assertEqual(self.run_all("bits", workers, folder)[0][0], "forms: 14\n")

    def test_one_and_two_workers_are_a_table_that_holds(self):
        with tempfile.TemporaryDirectory() as folder:
            for workers in (1, 2):
                self.run_all("plain", workers, folder)
            for files in (["n1.csv"], ["n2.csv"], ["n2.json"], ["n1.json", "n2.json"]):
                done = subprocess.run([PROGRAM, "check", *files], cwd=folder, capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            done = subprocess.run([PROGRAM, "report", "n1.json", "n2.json", "--tables"], cwd=folder, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("Where the time goes", done.stdout)

    def test_times_are_those_of_the_profiler(self):
        with tempfile.TemporaryDirectory() as folder:
            self.run_all("traced", 2, folder)
            run = json.loads(Path(folder, "traced.json").read_text())
            waited = [0, 0]
            for rank, measured in enumerate(run["ranks"]):
                steps, waits = profiled(Path(folder, f"trace{rank}.json"))
                mine = list(zip(measured["step_s"], [a + b for a, b in zip(measured["exposed_s"], measured["buffers_s"])]))
                # The profiler's numbers are not the wrapper's: the steps are those whose times are alike.
                begin = min(range(len(mine) - len(steps) + 1), key=lambda k: sum(abs(a[0] - b) for a, b in zip(mine[k:], steps)))
                mine = mine[begin:begin + len(steps)]
                step, wait = (sum(one[i] for one in mine) for i in (0, 1))
                print(f"rank {rank}: {len(steps)} steps {step:.4f} s, profiler {sum(steps):.4f} s; waiting {wait:.4f} s, profiler {sum(waits):.4f} s")
                self.assertGreater(len(steps), 15)
                self.assertAlmostEqual(step / sum(steps), 1, delta=0.03)
                waited = [waited[0] + wait, waited[1] + sum(waits)]
            self.assertAlmostEqual(waited[0] / waited[1], 1, delta=0.03)  # of both ranks: the one that is late waits for nothing

    def test_a_rank_that_dies_holds_nobody_up(self):
        with tempfile.TemporaryDirectory() as folder:
            begin = time.monotonic()
            self.run_all("leaves", 2, folder, codes=[1, 3])
            self.assertLess(time.monotonic() - begin, 60)
            run = json.loads(Path(folder, "leaves.json").read_text())
            self.assertEqual([one["rank"] for one in run["ranks"]], [0])
            self.assertIn("rank 1 gave no steps", run["notes"][0])

    def test_a_run_that_fails_writes_what_it_has(self):
        with tempfile.TemporaryDirectory() as folder:
            said = self.run_all("fails", 2, folder, codes=[1, 1])
            self.assertIn("the trainer's own mistake", said[0][1])
            run = json.loads(Path(folder, "fails.json").read_text())
            self.assertEqual((run["steps"], len(run["ranks"])), ([2, 3, 4, 5, 6], 2))

    def test_uneven_ranks_join(self):
        with tempfile.TemporaryDirectory() as folder:
            self.run_all("uneven", 2, folder)
            run = json.loads(Path(folder, "uneven.json").read_text())
            self.assertEqual((run["steps"][0], run["steps"][-1], [one["samples"] for one in run["ranks"]]), (2, 14, [4, 5]))


def profiled(path):
    """Seconds of the profiler's steps but the last, and of their waiting: gloo's broadcasts of buffers, and what gloo reduces
    after the last work of the backward pass."""
    events = json.loads(path.read_text())
    events = [event for event in (events if isinstance(events, list) else events["traceEvents"]) if event.get("ph") == "X"]
    begins = sorted(event["ts"] for event in events if event["name"].startswith("ProfilerStep#"))
    seconds, waits = [], []
    for begin, end in zip(begins, begins[1:]):
        inside = [event for event in events if begin <= event["ts"] < end]

        def ends(prefix):
            return [event["ts"] + event["dur"] for event in inside if event["name"].startswith(prefix)]
        wait = max(0, max(ends("gloo:all_reduce")) - max(ends("autograd::engine")))
        wait += max(ends("gloo:broadcast")) - min(event["ts"] for event in inside if event["name"] == "gloo:broadcast")
        waits.append(wait / 1e6)
        seconds.append((end - begin) / 1e6)
    return seconds, waits


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True, type=os.path.abspath)
    parser.add_argument("--long", action="store_true", help="processes that train, instead of the fast tests")
    options = parser.parse_known_args()[0]
    PROGRAM = options.program
    unittest.main(argv=sys.argv[:1], defaultTest=["LongProcesses"] if options.long else ["Columns", "Steps"])
