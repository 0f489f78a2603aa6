"""Cases of ranks.py: a training that diverges, in one process and in several, and what --on-nan makes of it."""

import json

from launching import check, errors_in, mpirun, result, run, train_options

# By epochs: which checkpoint inside an epoch is the newest depends on the disk (docs/reliability.md).
OPTIONS = ["--steps", "40", "--checkpoint-every", "1epochs", "--keep-checkpoints", "100"]
# Rates that throw the weights off: for ever, for so long that skip gives up, and until rollback has lowered them.
RATE = {"stop": ["--lr", "3000"], "skip": ["--lr", "20"], "rollback": ["--lr", "60"]}


def outcome(words, out):
    """Exit code, the sentences about numbers, and what is left behind."""
    code, said, err = run(words)
    lines = [line for line in (said + err).splitlines() if "loss" in line and ("step " in line or "update " in line)]
    record = json.loads((out / "record.json").read_text())
    checkpoints = {path.name: path.read_bytes() for path in sorted(out.glob("checkpoint-*.safetensors")) if not path.is_symlink()}
    return {"code": code, "lines": lines, "skipped": record.get("skipped_updates"), "rollbacks": record.get("rollbacks"),
            "checkpoints": checkpoints, "errors": errors_in(err)}


def diverges(args, folder):
    """--on-nan stop, skip and rollback: the same end, the same bytes and one sentence, however many share the work."""
    several = mpirun(args.processes)
    groups = {  # within one all must be alike
        "in shards": [("1 worker", [], ["--shard", "24"]), ("2 workers", [], ["--shard", "24", "--workers", "2"]),
                      ("processes", several, ["--shard", "24"])],
        "by worker": [("2 workers", [], ["--workers", "2"]), ("data-parallel", [], ["--workers", "2", "--parallel", "data-parallel"]),
                      ("processes", several, [])],
        "cuda-on-host": [("1 worker", [], ["--shard", "24", "--device", "cuda-on-host"]),
                         ("2 workers", [], ["--shard", "24", "--device", "cuda-on-host", "--workers", "2"]),
                         ("processes", several, ["--shard", "24", "--device", "cuda-on-host"])]}
    for rule in ("stop", "skip", "rollback"):
        for group, ways in groups.items():
            first = None
            for name, launcher, more in ways:
                out = folder / f"{rule} {group} {name}"
                options = train_options(folder, *RATE[rule], *OPTIONS, "--on-nan", rule, *more)  # the second --lr counts
                this = outcome(launcher + [args.program, *options, "--out", out], out)
                first = first or this
                check(all(this[key] == first[key] for key in ("code", "skipped", "rollbacks")),
                      f"{rule}, {group}, {name}: {this['code']} {this['lines']}, and not {first['code']} {first['lines']}")
                check(this["errors"] == (this["code"] != 0), f"{rule}, {group}, {name}: {this['errors']} errors are said")
                check(this["checkpoints"] == first["checkpoints"], f"{rule}, {group}, {name}: other checkpoints")
            check(rule != "stop" or first["code"] == 3, f"stop: exit {first['code']}")
            left_out = sum("its update is skipped" in line for line in first["lines"])
            check(rule != "skip" or left_out > 0, f"skip: no update was left out: {first['lines']}")
            check(rule != "rollback" or first["rollbacks"], f"rollback: there was none: {first['lines']}")
            print(f"--on-nan {rule}, {group}: exit {first['code']}, {left_out} updates left out, "
                  f"{len(first['rollbacks'] or [])} rollbacks: the same in all three ways")
