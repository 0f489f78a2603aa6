#!/usr/bin/env python3
"""How long `paceline check` takes for one table of 10,000 rows, and for a trace of 200 MB, and the memory of each.

    bench/check_speed.py build/release/paceline [megabytes]

Prints seconds and the largest resident set. Bounds (docs/decisions/tables.md): 1 s; 30 s and 500 MB.
"""

import os
import random
import subprocess
import sys
import tempfile
import time

COLUMNS = (
    "run program model workers repeat seed local_batch train_samples test_samples time_s time_of claimed_speedup "
    "claimed_efficiency scaling compute_s communication_s communication_is best message_bytes claimed_bandwidth "
    "bandwidth_unit bandwidth_is accuracy quality_of setting.precision setting.compiler"
).split()


def scaling(k, draw):
    time_1, batch, wrong = draw.uniform(1, 1000), draw.choice([16, 32, 64, 128]), draw.random() < 0.3
    for n in (1, 2, 4, 8, 16):
        seconds = time_1 / n * draw.uniform(1, 1.3)
        speedup = time_1 / seconds * (n if wrong else 1)
        yield {
            "run": f"s{k} n{n}", "workers": n, "local_batch": batch, "train_samples": 50000, "time_of": "epoch",
            "time_s": f"{seconds:.4g}", "claimed_speedup": f"{speedup:.3g}" if n > 1 else "", "scaling": "weak",
            "claimed_efficiency": f"{speedup / n:.3g}" if n > 1 else "", "compute_s": f"{seconds * 0.8:.4g}",
            "communication_s": f"{seconds * 0.15:.4g}", "communication_is": "exposed", "test_samples": 10000,
            "accuracy": f"{draw.randint(5000, 9900) / 1e4:.4f}", "best": draw.choice(["yes", "no", ""]),
            "quality_of": "test", "model": f"m{k % 17}" if k % 4 == 0 else "",
            "setting.precision": draw.choice(["fp32", "bf16"]) if k % 3 == 0 else "",
            "setting.compiler": str(draw.randint(1, 5)) if k % 5 == 0 else "",
        }


def messages(k, _):
    for power in range(20):
        size = 8 << power
        seconds = 1e-5 + size / 1e10
        yield {
            "run": f"s{k} {size}", "workers": 8, "message_bytes": size, "time_s": f"{seconds:.4g}", "time_of": "step",
            "claimed_bandwidth": f"{1.75 * size / seconds / 1e9:.3g}", "bandwidth_unit": "GB/s", "bandwidth_is": "busbw",
        }
    yield {"run": f"s{k} mean", "workers": 8, "claimed_bandwidth": 3.1, "bandwidth_unit": "GB/s", "bandwidth_is": "busbw"}


def repeats(k, draw):
    for repeat in range(1, 6):
        yield {
            "run": f"s{k} r", "program": f"p{k}", "workers": 1, "repeat": repeat, "seed": repeat,
            "time_s": f"{draw.uniform(9, 11):.3f}", "time_of": "step", "accuracy": 0.91, "test_samples": 10000,
        }


def write_table(path, rows):
    draw, written, k = random.Random(3), 0, 0
    with open(path, "w") as file:
        file.write(",".join(COLUMNS) + "\n")
        while written < rows:
            k += 1
            kind = draw.choices([scaling, messages, repeats], [6, 1, 2])[0]
            for row in kind(k, draw):
                if written < rows:
                    file.write(",".join(str(row.get(column, "")) for column in COLUMNS) + "\n")
                    written += 1


def write_trace(path, megabytes):
    with open(path, "w") as file:
        file.write('{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "Example GPU"}],\n')
        file.write(' "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 8}, "traceEvents": [\n')
        step, call = 0, 0
        while file.tell() < megabytes << 20:
            at = 1e9 + step * 100000.0
            line = '{"ph": "X", "cat": "%s", "name": "%s", "pid": %d, "tid": %d, "ts": %.3f, "dur": %.3f, "args": {%s}},\n'
            lines = [line % ("user_annotation", f"ProfilerStep#{step}", 1, 1, at, 100000, "")]
            lines.append(line % ("user_annotation", "Optimizer.step#SGD.step", 1, 1, at + 80000, 5000, ""))
            for k in range(500):
                call += 1
                about = f'"External id": {call}, "correlation": {call}, "stream": 7'
                lines.append(line % ("cpu_op", "aten::convolution", 1, 1, at + k * 170, 90, f'"External id": {call}'))
                lines.append(line % ("cuda_runtime", "cudaLaunchKernel", 1, 1, at + k * 170 + 20, 6, about))
                name = "ampere_scudnn_128x64_relu_xregs_large_nn_v1"
                lines.append(line % ("kernel", name, 0, 7, at + k * 180 + 100, 150, about))
            for k in range(20):
                about = '"Collective name": "allreduce", "In msg nelems": 1000000, "dtype": "Float", "Process Group Name": "0"'
                lines.append(line % ("kernel", "ncclDevKernel_AllReduce_Sum_f32", 0, 20, at + k * 4000, 3000, about))
            file.writelines(lines)
            step += 1
        file.write('{"ph": "M", "name": "process_name", "pid": 0}]}\n')


def measure(name, command):
    before = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.monotonic() - before
    print(f"{name}: {seconds:.2f} s, {usage.ru_maxrss / 1024:.0f} MiB, exit code {os.waitstatus_to_exitcode(status)}")


def main():
    program, megabytes = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 200
    with tempfile.TemporaryDirectory() as folder:
        table, trace = os.path.join(folder, "t.csv"), os.path.join(folder, "trace.json")
        write_table(table, 10000)
        write_trace(trace, megabytes)
        measure("table of 10,000 rows", [program, "check", table])
        measure(f"trace of {megabytes} MiB", [program, "import", trace])


if __name__ == "__main__":
    main()
