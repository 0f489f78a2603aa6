"""A trainer for paceline_ddp_test.py and bench/ddp_wrapper_cost.py: a small network on made-up images, gloo.

    ddp_trainer.py CASE RANK WORKERS PORT FOLDER
"""
import contextlib
import json
import os
import random
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "share/paceline"))
sys.dont_write_bytecode = True
from paceline_ddp import Measured  # noqa: E402


class Net(nn.Module):
    """`width` sets how long a step is; with `has_spare` a part takes no part in the loss."""

    def __init__(self, width=8, has_spare=False):
        super().__init__()
        self.stem, self.norm, self.body = nn.Conv2d(3, width, 3, padding=1), nn.BatchNorm2d(width), nn.Conv2d(width, width, 3, padding=1)
        self.fc, self.head = nn.Linear(width * 64, 24), nn.Linear(24, 10)
        self.spare = nn.Linear(24, 10) if has_spare else None

    def forward(self, x):
        x = F.relu(self.body(F.relu(self.norm(self.stem(x)))))
        return {"logits": self.head(F.relu(self.fc(F.adaptive_avg_pool2d(x, 8).flatten(1))))}


def join(rank, workers, port):
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=workers)


def train(model, batches, optimizer, after=lambda step: None):
    for step, x in enumerate(batches):
        optimizer.zero_grad()
        F.cross_entropy(model(x)["logits"], torch.zeros(len(x), dtype=torch.long)).backward()
        optimizer.step()
        after(step)


def gradients(make, rank, folder, accumulate, keeps, **settings):
    """Gradients of every update of 12 batches."""
    torch.manual_seed(0)
    net = Net(has_spare="find_unused_parameters" in settings)
    model = make(net, bucket_cap_mb=0.01, **settings, **({"out": f"{folder}/bits", "warmup": 1} if make is Measured else {}))
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    torch.manual_seed(5 + rank)
    batches, all_of_them = [torch.randn(4, 3, 8, 8) for _ in range(12)], []
    for k, x in enumerate(model.steps(batches) if make is Measured else batches):
        is_update = (k + 1) % accumulate == 0
        with contextlib.nullcontext() if is_update else model.no_sync():
            model(x)["logits"].square().mean().backward()
        if is_update:
            all_of_them.append([p.grad.clone() for p in model.parameters() if p.grad is not None])
            optimizer.step()
            optimizer.zero_grad(set_to_none=not keeps)
    if make is Measured:
        model.finish()
    return all_of_them


def bits(rank, workers, folder):
    """Prints each form in which the gradients are not those of DistributedDataParallel, then how many forms there were."""
    forms = [{}, {"find_unused_parameters": True}, {"gradient_as_bucket_view": True}, {"static_graph": True}]
    tried = 0
    for settings in forms:
        for keeps in (False, True):
            for accumulate in (1, 3):
                if accumulate > 1 and "static_graph" in settings:
                    continue  # DistributedDataParallel itself fails with both
                ours, theirs = (gradients(make, rank, folder, accumulate, keeps, **settings) for make in (Measured, DistributedDataParallel))
                is_same = len(ours) == len(theirs) == 12 // accumulate and all(
                    len(a) == len(b) >= 8 and all(map(torch.equal, a, b)) for a, b in zip(ours, theirs))
                tried += 1
                if rank == 0 and not is_same:
                    print("differs:", settings, keeps, accumulate, flush=True)
    if rank == 0:
        print("forms:", tried, flush=True)


def traced(rank, workers, folder):
    """Measured and profiled at the same time; rank 1 is late now and then."""
    model = Measured(Net(64), out=f"{folder}/traced", warmup=4, bucket_cap_mb=0.5)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)

    def late_batches():
        for k in range(24):
            if rank == 1:
                time.sleep(0.02)
            yield torch.randn(32, 3, 32, 32)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], schedule=torch.profiler.schedule(wait=1, warmup=3, active=18),
                                on_trace_ready=lambda profiler: profiler.export_chrome_trace(f"{folder}/trace{rank}.json")) as profiler:
        train(model, model.steps(late_batches()), optimizer, lambda _: profiler.step())


def leaves(rank, workers, folder):
    """Rank 1 dies without a word in its 8th step."""
    model = Measured(Net(), out=f"{folder}/leaves", warmup=2)
    train(model, model.steps([torch.randn(4, 3, 8, 8)] * 20), torch.optim.SGD(model.parameters(), 0.01),
          lambda step: os._exit(3) if rank == 1 and step == 7 else None)


def fails(rank, workers, folder):
    """The trainer of every rank raises in its 8th step."""
    model = Measured(Net(), out=f"{folder}/fails", warmup=2)

    def fail(step):
        if step == 7:
            raise ValueError("the trainer's own mistake")
    train(model, model.steps([torch.randn(4, 3, 8, 8)] * 20), torch.optim.SGD(model.parameters(), 0.01), fail)


def uneven(rank, workers, folder):
    """Ranks with other batches, of which rank 1 has fewer, in DistributedDataParallel's join()."""
    model = Measured(Net(), out=f"{folder}/uneven", warmup=2)
    with model.join():
        train(model, model.steps([torch.randn(4 + rank, 3, 8, 8)] * (20 - 5 * rank)), torch.optim.SGD(model.parameters(), 0.01))


def plain(rank, workers, folder):
    """As a trainer would be written, two loops."""
    model = Measured(Net(), out=f"{folder}/n{workers}", warmup=2, facts={"run": f"n{workers}", "scaling": "weak"})
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for _ in range(2):
        train(model, model.steps([torch.randn(4, 3, 8, 8)] * 10), optimizer)
        with torch.no_grad():
            model(torch.randn(4, 3, 8, 8))


class Sleeping(torch.autograd.Function):
    """Computes nothing, for a while: so more workers than cores compute as if each had its own."""

    @staticmethod
    def forward(ctx, x):
        time.sleep(0.004)
        return x.clone()

    @staticmethod
    def backward(ctx, d_x):
        time.sleep(0.008 * random.gauss(1, 0.03))
        return d_x


class SleepingNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList([nn.Linear(256, 256) for _ in range(8)])

    def forward(self, x):
        for part in self.parts:
            x = Sleeping.apply(part(x))
        return {"logits": x}


def sleeps(rank, workers, folder):
    """Of a network that sleeps; 8 buckets."""
    random.seed(rank)
    model = Measured(SleepingNet(), out=f"{folder}/sleeps{workers}", warmup=10, bucket_cap_mb=0.25, facts={"scaling": "weak"})
    train(model, model.steps([torch.randn(8, 256)] * 210), torch.optim.SGD(model.parameters(), 0.01))


def cost(rank, workers, folder):
    """Seconds of steps, wrapped and not, in turns of five steps on one model each; prints them as JSON."""
    width, images = (int(os.environ.get(name, usual)) for name, usual in (("WIDTH", 64), ("BATCH", 32)))
    batch = torch.randn(images, 3, 32, 32)
    models = [Measured(Net(width), out=f"{folder}/cost", warmup=0), DistributedDataParallel(Net(width))]
    optimizers = [torch.optim.SGD(model.parameters(), 0.01) for model in models]
    seconds = [[], []]
    for turn in range(int(os.environ.get("TURNS", 80))):
        for which in ((0, 1), (1, 0))[turn % 2]:
            model = models[which]
            dist.barrier()
            begin = time.perf_counter()
            train(model, model.steps([batch] * 5) if which == 0 else [batch] * 5, optimizers[which])
            seconds[which].append((time.perf_counter() - begin) / 5)
    if rank == 0:
        print(json.dumps(seconds), flush=True)


if __name__ == "__main__":
    case, rank, workers, port, folder = sys.argv[1:]
    join(int(rank), int(workers), port)
    {"bits": bits, "traced": traced, "leaves": leaves, "fails": fails, "uneven": uneven, "plain": plain, "sleeps": sleeps,
     "cost": cost}[case](
        int(rank), int(workers), folder)
