"""Measures a trainer that uses PyTorch's DistributedDataParallel, for `paceline check`, `report` and `predict`.

    from paceline_ddp import Measured

    model = Measured(model, out="run")        # in place of DistributedDataParallel(model), whose arguments it takes too
    for images, labels in model.steps(loader):  # in place of `in loader`, in the loop of the training
        ...

At the end of the program rank 0 writes run.csv, a table for `paceline check`, and run.json, every step of every rank.
Gradients have the bits of DistributedDataParallel's own all-reduce. A step lasts from one batch's request to the next
one's; with no_sync() it is all batches up to the one that is reduced. On GPUs times are those of CUDA events, which are
read when they are over, so no step is synchronised.

Needs PyTorch 1.13 or later, and nothing else: this file may be copied and run anywhere.
"""
import base64
import collections
import datetime
import json
import math
import multiprocessing.util
import os
import platform
import socket
import statistics
import sys
import threading
import time
import zlib

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

SCHEMA = "paceline-ddp-1"
MOST_STEPS = 4096  # of a rank; of a longer run every 2nd, 4th, ... step is kept, the same ones by all ranks
PATIENCE_S = 10.0  # how long rank 0 waits at the end for the rows of others
SAVE_EVERY_S = 60.0  # after a loop, so that a run that is killed leaves its earlier loops


class HostClock:
    """Marks are times of the host."""
    name = "host"

    def mark(self):
        return time.perf_counter()

    def between(self, begin, end):
        return end - begin

    def is_over(self, mark):
        return True

    def wait(self, mark):
        pass

    def give_back(self, marks):
        pass


class DeviceClock:
    """Marks are CUDA events on the stream that is current; nothing waits for them before the run ends."""
    name = "device"

    def __init__(self, device):
        self.device, self.free = device, []

    def mark(self):
        event = self.free.pop() if self.free else torch.cuda.Event(enable_timing=True)
        event.record(torch.cuda.current_stream(self.device))
        return event

    def between(self, begin, end):
        return begin.elapsed_time(end) / 1e3

    def is_over(self, mark):
        return mark.query()

    def wait(self, mark):
        mark.synchronize()

    def give_back(self, marks):
        self.free.extend(marks)


class Step:
    """The marks of one step."""

    def __init__(self, number, begin):
        self.number, self.begin, self.end, self.samples = number, begin, None, 0
        self.data, self.forward, self.buffers = [], [], []  # [begin, end]
        self.backward = []  # [begin, end of its own work, end of what DDP does then]
        self.buckets = []  # [ready, end], in the order of posting
        self.bytes = []  # of each bucket

    def marks(self):
        """Each once: the begin is in `data`, the end is the next step's begin."""
        return [mark for marks in self.data + self.forward + self.buffers + self.backward + self.buckets for mark in marks]

    def row(self, clock):
        """Its seconds. Times of buckets count from the begin of the last backward."""
        def sums(pairs):
            return sum(clock.between(pair[0], pair[1]) for pair in pairs)
        start, own_end, all_end = self.backward[-1]
        end_s = [clock.between(start, end) for _, end in self.buckets]
        last_backward = clock.between(start, own_end)
        return {"step": self.number, "samples": self.samples, "batches": len(self.data),
                "step_s": clock.between(self.begin, self.end), "data_s": sums(self.data),
                "forward_s": sums(self.forward) - sums(self.buffers), "buffers_s": sums(self.buffers),
                "backward_s": sums(self.backward), "last_backward_s": last_backward,
                # Afterwards DDP copies the sums from its buckets, which is work.
                "exposed_s": max(0.0, min(max(end_s), clock.between(start, all_end)) - last_backward),
                "ready_s": [clock.between(start, ready) for ready, _ in self.buckets], "end_s": end_s, "bytes": self.bytes}


def tensors_of(value):
    """The tensors in a model's output or input, of any nesting."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from tensors_of(one)
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from tensors_of(one)
    elif hasattr(value, "__dataclass_fields__"):
        for name in value.__dataclass_fields__:
            yield from tensors_of(getattr(value, name, None))


def say(sentence):
    print(f"paceline_ddp: {sentence}", file=sys.stderr, flush=True)


class Measured(DistributedDataParallel):
    """DistributedDataParallel that keeps times.

    out     name of the files without ending (paceline-ddp-N of N workers)
    warmup  steps at the beginning that are left out
    facts   cells of the table that only you know: {"run": "a", "setting.precision": "bf16"}
    All other arguments are DistributedDataParallel's.
    """

    _instances = 0
    _inner_hook = None  # of the trainer, or of DDP itself for mixed precision, which registers one as it begins

    def __init__(self, module, *args, out=None, warmup=10, facts=None, **kwargs):
        if isinstance(module, DistributedDataParallel):
            raise ValueError("paceline_ddp: the model is already in DistributedDataParallel; give Measured the model itself")
        if not (isinstance(warmup, int) and warmup >= 0):
            raise ValueError(f"paceline_ddp: warmup must be a number of steps, 0 or more, but is {warmup!r}")
        if not (dist.is_available() and dist.is_initialized()):
            raise RuntimeError("paceline_ddp: there is no process group; call torch.distributed.init_process_group before Measured")
        out = os.fspath(out) if out is not None else f"paceline-ddp-{dist.get_world_size()}"
        if not os.path.isdir(os.path.dirname(out) or "."):
            raise ValueError(f"paceline_ddp: out is {out!r}, but there is no folder {os.path.dirname(out)!r}; make it first")
        super().__init__(module, *args, **kwargs)
        self._out, self._warmup, self._facts = os.path.abspath(out), warmup, dict(facts or {})
        self._rank, self._workers = dist.get_rank(self.process_group), dist.get_world_size(self.process_group)
        self._store = dist.distributed_c10d._get_default_store()  # kept: it must outlive destroy_process_group()
        self._backend = dist.get_backend(self.process_group)
        Measured._instances += 1
        self._key = f"paceline_ddp/{Measured._instances}"
        device = next(module.parameters()).device
        self._clock = DeviceClock(device) if device.type == "cuda" else HostClock()
        self._step, self._closed, self._pending, self._rows, self._every = None, 0, [], [], 1
        self._is_in_loop, self._in_backward, self._idle_batches = False, False, 0
        self._grads, self._saved_at, self._is_finished = {}, time.monotonic(), False
        self._train_samples = None
        super().register_comm_hook(None, self._reduce)
        # Called at the end of the program, and of processes of torch.multiprocessing too, where atexit is not.
        self._at_exit = multiprocessing.util.Finalize(None, self.finish, exitpriority=100)

    # ---- what the trainer calls

    def steps(self, loader):
        """The batches of `loader`. A step begins where a batch is asked for."""
        if self._is_in_loop:
            raise RuntimeError("paceline_ddp: steps() was called within another loop over steps(); use it for the training's loop only")
        self._is_in_loop = True
        if hasattr(getattr(loader, "dataset", None), "__len__"):
            self._train_samples = len(loader.dataset)
        try:
            asked = self._clock.mark()
            batches = iter(loader)
            while True:
                if self._step is None:
                    self._step = Step(self._closed, asked)
                try:
                    batch = next(batches)
                except StopIteration:
                    return
                self._step.data.append([asked, self._clock.mark()])
                yield batch
                asked = self._clock.mark()
                if self._step.buckets:
                    self._close(asked)
        finally:  # also where the loop was left: whether its last step was whole is not known
            if self._step is not None:
                self._idle_batches += len(self._step.data)
            self._step, self._in_backward, self._is_in_loop = None, False, False
            if time.monotonic() - self._saved_at > SAVE_EVERY_S:
                self._save(patience_s=0.05)

    def finish(self):
        """Gathers and writes. Called at the end of the program where the trainer does not."""
        if self._is_finished:
            return
        self._is_finished = True
        self._at_exit.cancel()
        self._save(PATIENCE_S)

    def register_comm_hook(self, state, hook):
        """A hook of the trainer's own, which is timed in place of the all-reduce."""
        if self._inner_hook is not None:
            raise RuntimeError("paceline_ddp: register_comm_hook can only be called once")
        self._inner_hook = (state, hook)

    # ---- one step

    def forward(self, *inputs, **kwargs):
        step = self._step
        if not torch.is_grad_enabled():
            return super().forward(*inputs, **kwargs)
        begin = self._clock.mark()
        output = super().forward(*inputs, **kwargs)
        if self.gradient_as_bucket_view and self._workers & (self._workers - 1):
            self._grads = {id(p): p.grad.data_ptr() for p in self.module.parameters() if p.grad is not None}
        if step is None:
            return output
        step.forward.append([begin, self._clock.mark()])
        first = next((tensor for tensor in tensors_of([inputs, kwargs]) if tensor.dim() > 0), None)
        step.samples += 0 if first is None else first.size(0)
        for tensor in tensors_of(output):
            if tensor.requires_grad:
                tensor.register_hook(self._begin_backward)
        return output

    def _sync_buffers(self):  # rank 0's buffers, such as batch norm's statistics: the others wait for it
        begin = self._clock.mark()
        super()._sync_buffers()
        if self._step is not None and torch.is_grad_enabled():
            self._step.buffers.append([begin, self._clock.mark()])

    def _begin_backward(self, *_):
        step = self._step
        if step is None or self._in_backward:
            return
        self._in_backward = True
        step.backward.append([self._clock.mark(), None, None])

        # Callbacks run after the last gradient, in the order of queueing. DDP queues its own, which waits for the
        # buckets, later than this one and earlier than the one that this one queues.
        def own_work_ends():
            step.backward[-1][1] = self._clock.mark()
            queue(all_ends)

        def all_ends():
            step.backward[-1][2] = self._clock.mark()
            self._in_backward = False
        queue = torch.autograd.Variable._execution_engine.queue_callback
        queue(own_work_ends)

    def _reduce(self, _, bucket):
        """DDP's communication hook."""
        step, place = self._step, None
        if step is not None:
            self._begin_backward()  # where no output could be watched
            place = [self._clock.mark(), None]
            step.buckets.append(place)
            step.bytes.append(bucket.buffer().numel() * bucket.buffer().element_size())
        if self._inner_hook is not None:
            state, hook = self._inner_hook
            future = hook(state, bucket)
        else:
            self._divide(bucket)
            future = dist.all_reduce(bucket.buffer(), group=self.process_group, async_op=True).get_future()

        def ends(done):
            if place is not None:
                place[1] = self._clock.mark()
            value = done.value()
            return value[0] if isinstance(value, (list, tuple)) else value
        return future.then(ends)

    def _divide(self, bucket):
        """As DDP does without a hook: it multiplies by 1/N what it copies to its bucket, and divides what is there already.
        For N that are no power of two these round differently."""
        n = self._workers
        if not self._grads:
            bucket.buffer().mul_(1.0 / n)
            return
        for parameter, gradient in zip(bucket.parameters(), bucket.gradients()):
            if self._grads.get(id(parameter)) == gradient.data_ptr():
                gradient.div_(n)
            else:
                gradient.mul_(1.0 / n)

    def _close(self, now):
        step, self._step, self._in_backward = self._step, None, False
        step.end = now
        self._closed += 1
        is_whole = step.backward and all(None not in marks for marks in step.backward + step.buckets)
        if step.number >= self._warmup and (step.number - self._warmup) % self._every == 0 and is_whole:
            self._pending.append(step)
        while self._pending and self._clock.is_over(self._pending[0].end):
            self._keep(self._pending.pop(0))

    def _keep(self, step):
        self._rows.append(step.row(self._clock))
        self._clock.give_back(step.marks())
        if len(self._rows) > MOST_STEPS:
            self._every *= 2
            self._rows = [row for row in self._rows if (row["step"] - self._warmup) % self._every == 0]

    # ---- the end

    def _save(self, patience_s):
        """Hands the rows to rank 0 by the store of the process group, in which no rank waits for another: one that is dead
        cannot hold others up, and rank 0 waits `patience_s` seconds at most."""
        self._saved_at = time.monotonic()
        while self._pending:
            step = self._pending.pop(0)
            self._clock.wait(step.end)
            self._keep(step)
        mine = {"rank": self._rank, "host": socket.gethostname(), "device": device_name(self._clock), "threads": torch.get_num_threads(),
                "steps_seen": self._closed, "every": self._every, "without_backward": self._idle_batches, "rows": self._rows}
        try:
            if self._rank != 0:
                text = base64.b64encode(zlib.compress(json.dumps(mine).encode(), 1)).decode()
                within(patience_s or PATIENCE_S, lambda: self._store.set(f"{self._key}/{self._rank}", text))
                return
            ranks, deadline = [mine], time.monotonic() + patience_s
            for rank in range(1, self._workers):
                left_s = max(deadline - time.monotonic(), 0.01)
                rows = within(left_s + PATIENCE_S, lambda: self._rows_of(rank, left_s))  # the store keeps its own time first
                ranks += [rows] if rows else []
            self._write(ranks)
        except Exception as error:  # a measurement must not end a training
            say(f"rank {self._rank} could not hand on its steps: {str(error).splitlines()[0] if str(error) else type(error).__name__}")

    def _rows_of(self, rank, patience_s):
        key = f"{self._key}/{rank}"
        try:
            self._store.wait([key], datetime.timedelta(seconds=patience_s))
            return json.loads(zlib.decompress(base64.b64decode(self._store.get(key))))
        except RuntimeError:
            return None

    def _write(self, ranks):
        run = run_of(ranks, self._workers, self._warmup)
        if run is None:
            if self._is_finished:
                say(f"no step was measured: {self._closed} were seen and the first {self._warmup} are warm-up; use "
                    "'for batch in model.steps(loader)' in the training's loop" +
                    (f" ({self._idle_batches} batches had no backward that was reduced)" if self._idle_batches else ""))
            return
        parameters = [p for p in self.module.parameters() if p.requires_grad]
        row = {"run": os.path.basename(self._out), "program": f"PyTorch {torch.__version__}", "model": type(self.module).__name__,
               "parameters": sum(p.numel() for p in parameters), "element_bytes": parameters[0].element_size(),
               "train_samples": self._train_samples, "setting.backend": self._backend, **row_of(run, self._clock.name), **self._facts}
        run["row"] = {name: str(value) for name, value in row.items() if value is not None}
        for ending, text in (("csv", csv(run)), ("json", json.dumps(run, separators=(",", ":")) + "\n")):
            with open(f"{self._out}.{ending}.part", "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(f"{self._out}.{ending}.part", f"{self._out}.{ending}")
        if self._is_finished:
            say("; ".join([f"{self._out}.csv, {self._out}.json: {len(run['steps'])} steps of {len(run['ranks'])} ranks"] + run["notes"]))


def within(seconds, call):
    """The result of `call`, or None after that time: a peer that is stopped must not hold this process."""
    result = []
    thread = threading.Thread(target=lambda: result.append(attempt(call)), daemon=True)
    try:
        thread.start()
    except RuntimeError:  # Python 3.12 starts no thread at the end of a program
        return call()
    thread.join(seconds)
    if result and isinstance(result[0], Exception):
        raise result[0]
    return result[0] if result else None


def attempt(call):
    try:
        return call()
    except Exception as error:
        return error


def device_name(clock):
    if clock.name == "device":
        return torch.cuda.get_device_name(clock.device)
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
        return names[0] if names else platform.processor() or platform.machine()
    except OSError:
        return platform.processor() or platform.machine()


# ---- what rank 0 makes of all ranks' rows

def run_of(ranks, workers, warmup):
    """All ranks' steps as columns; None if there is no step."""
    notes = []
    missing = sorted(set(range(workers)) - {one["rank"] for one in ranks})
    if missing:
        notes.append(f"rank {', '.join(map(str, missing))} gave no steps: it ended early, or did not answer within {PATIENCE_S:g} s")
    seen = {one["steps_seen"] for one in ranks}
    if len(seen) > 1:
        notes.append(f"the ranks made different numbers of steps: {min(seen)} to {max(seen)}")
    every = max(one["every"] for one in ranks)
    if every > 1:
        notes.append(f"one step of {every} is kept")
    by_rank = [{row["step"]: row for row in one["rows"] if (row["step"] - warmup) % every == 0} for one in ranks]
    common = sorted(set.intersection(*map(set, by_rank)))
    # Steps of one kind: a smaller batch at the end of an epoch, or other buckets before DDP has ordered them, are others.
    kinds = [tuple((rows[step]["samples"], rows[step]["batches"], tuple(rows[step]["bytes"])) for rows in by_rank) for step in common]
    if not kinds:
        return None
    counts = collections.Counter(kinds)
    usual = max(reversed(list(counts)), key=counts.get)  # of two as frequent ones the later
    steps = [step for step, kind in zip(common, kinds) if kind == usual]
    if len({kind[2] for kind in usual}) > 1:
        notes.append("the ranks have different buckets: transfer and waiting cannot be told apart")
    if len(steps) < len(common):
        notes.append(f"{len(common) - len(steps)} steps of another batch or other buckets are left out")
    notes.append(f"the first {warmup} steps are warm-up and left out" if warmup else "no step was left out as warm-up")
    hosts = list(dict.fromkeys(one["host"] for one in ranks))
    run = {"schema": SCHEMA, "workers": workers, "hosts": len(hosts), "warmup": warmup, "every": every, "notes": notes, "steps": steps,
           "bucket_bytes": list(usual[0][2]), "ranks": []}
    for one, rows, (samples, batches, sizes) in zip(ranks, by_rank, usual):
        rows = [rows[step] for step in steps]
        rank = {"rank": one["rank"], "host": hosts.index(one["host"]), "device": one["device"], "threads": one["threads"],
                "samples": samples, "batches": batches}
        for name in ("step_s", "data_s", "forward_s", "buffers_s", "backward_s", "last_backward_s", "exposed_s"):
            rank[name] = [row[name] for row in rows]
        for name in ("ready_s", "end_s"):  # by bucket
            rank[name] = [[row[name][bucket] for row in rows] for bucket in range(len(sizes))]
        run["ranks"].append(rank)
    if len({kind[2] for kind in usual}) == 1 and not missing:
        add_late(run)
    for rank in run["ranks"]:
        for name, values in rank.items():
            if name.endswith("_s"):
                rank[name] = rounded(values)
    return run


def rounded(values):
    return [rounded(one) if isinstance(one, list) else max(round(one, 7), 0.0) for one in values]


def add_late(run):
    """Of what a rank waits for, the part that waits for a later rank. A bucket's all-reduce moves nothing before the last
    rank has posted it, and that rank's is the shortest: what others' take longer is waiting. No clocks are compared."""
    ranks = run["ranks"]
    for rank in ranks:
        rank["late_s"] = []
    for k in range(len(run["steps"])):
        moving = [min(rank["end_s"][j][k] - rank["ready_s"][j][k] for rank in ranks) for j in range(len(run["bucket_bytes"]))]
        buffers = min(rank["buffers_s"][k] for rank in ranks)
        for rank in ranks:
            begin = rank["last_backward_s"][k]  # of what is exposed
            ends = [rank["end_s"][j][k] for j in range(len(moving))]
            waits = [(rank["ready_s"][j][k], end - moving[j]) for j, end in enumerate(ends)]
            transfers = [(end - moving[j], end) for j, end in enumerate(ends)]
            window = (begin, begin + rank["exposed_s"][k])
            late = covered(waits + transfers, window) - covered(transfers, window)
            rank["late_s"].append(min(late, rank["exposed_s"][k]) + rank["buffers_s"][k] - buffers)


def covered(spans, window):
    """How much of `window` lies in any of `spans`."""
    total, at = 0.0, window[0]
    for begin, end in sorted(spans):
        begin, end = max(begin, at), min(end, window[1])
        if end > begin:
            total, at = total + end - begin, end
    return total


def row_of(run, clock):
    """The cells of `paceline-table-1`: means over steps and ranks."""
    ranks = run["ranks"]

    def mean(*names):
        return sum(statistics.fmean(rank[name]) for rank in ranks for name in names) / len(ranks)
    times = [statistics.fmean(rank["step_s"][k] for rank in ranks) for k in range(len(run["steps"]))]
    step = statistics.fmean(times)
    compute, communication, data = mean("forward_s", "backward_s"), mean("exposed_s", "buffers_s"), mean("data_s")
    samples = [rank["samples"] for rank in ranks]
    is_all = len(ranks) == run["workers"]
    row = {"device": ranks[0]["device"], "workers": run["workers"], "nodes": run["hosts"] if is_all else None,
           "local_batch": samples[0] if samples[0] and len(set(samples)) == 1 else None,
           "global_batch": sum(samples) if is_all and all(samples) else None,
           "time_s": digits(step), "time_of": "step", "covers": "data copy compute communication update", "statistic": "mean" if len(times) > 1 else "single",
           "repeats": len(times), "warmup": run["warmup"], "clock": clock, "compute_s": digits(compute), "communication_s": digits(communication),
           "communication_is": "exposed", "data_wait_s": digits(data), "other_s": digits(max(step - compute - communication - data, 0.0)),
           "message_bytes": sum(run["bucket_bytes"]), "setting.buckets": len(run["bucket_bytes"]), "setting.threads": ranks[0]["threads"]}
    if len(times) > 1:
        row.update(spread_s=digits(statistics.stdev(times)), spread_is="sd")
    if row["global_batch"]:
        row.update(rate_per_s=digits(row["global_batch"] / step), rate_of="all")
    if "late_s" in ranks[0]:
        late = mean("late_s")
        row.update(late_peer_s=digits(late), transfer_s=digits(max(communication - late, 0.0)))
    if ranks[0]["batches"] > 1:
        row["setting.accumulated_batches"] = ranks[0]["batches"]
    return row


def digits(value):
    return f"{value:.7g}" if math.isfinite(value) else None


def csv(run):
    def cell(text):
        return '"' + text.replace('"', '""') + '"' if any(sign in text for sign in ',"\n') else text
    lines = ['# schema = "paceline-table-1"'] + [f"# # {note}" for note in run["notes"]]
    return "\n".join(lines + [",".join(map(cell, run["row"])), ",".join(map(cell, run["row"].values()))]) + "\n"
