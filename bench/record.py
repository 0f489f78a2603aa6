"""What a benchmark's JSON record says of itself: what was measured, when, which commit, on which machine."""
import datetime
import json
import os
import platform
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def processor():
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor()


def commit():
    done = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return done.stdout.strip() or None


def header(what):
    return {"what": what, "when": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "commit": commit(), "processor": processor(), "cores": os.cpu_count(),
            "environment": {k: v for k, v in os.environ.items() if k.startswith(("OMP_", "GOMP_", "ONEDNN_", "DNNL_", "KMP_", "ATEN_", "OPENBLAS_", "PACELINE_MAX_"))}}


def write(path, record):
    """Writes `record`, header included, and says where; without a path nothing."""
    if not path:
        return
    with open(path, "w") as file:
        json.dump(record, file, indent=1)
    print("record:", path)
