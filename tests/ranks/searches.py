"""The case of ranks.py that searches."""

import json
import re

from launching import MODEL, check, mpirun, run


def records_of(out):
    return {path.stem: json.loads(path.read_text()) for path in (out / "records").glob("*.json")}


def figures(record):
    return [(epoch["validation_accuracy"], epoch["validation_loss"]) for epoch in record["epochs"]]


def search(args, folder):
    """A grid and a halving of which one configuration diverges: that one has failed, the others are ranked, and all is as
    in one process with as many workers."""
    (folder / "model.toml").write_text(MODEL)
    words = [args.program, "search", "--model", folder / "model.toml", "--data", "synthetic,train=320,test=60", "--precision",
             "fp32", "--threads", "1", "--no-pin", "--global-batch", 4 * args.processes, "--epochs", "4", "--validation-split", "0.25"]
    for name, rates, more in (("grid", "0.05,1e30,0.0001", []), ("halved", "0.0001,1e30,0.05,0.001", ["--halving"])):
        asked = [*words, "--lr", rates, *more]
        code, out, err = run([*asked, "--workers", args.processes, "--out", folder / f"{name}-one"])
        check(code == 0, f"{name}, one process: exit {code}\n{out}{err}")
        code, out, err = run(mpirun(args.processes) + [*asked, "--out", folder / name])
        check(code == 0, f"{name}: exit {code}\n{out}{err}")
        check(" is best: " in out and "read once" in out, f"{name}: {out}")
        alone, here = records_of(folder / f"{name}-one"), records_of(folder / name)
        check(alone.keys() == here.keys(), f"{name}: records {sorted(here)} and not {sorted(alone)}")
        failed = [record for record in here.values() if record["status"] == "failed"]
        check(len(failed) == 1 and "no longer finite" in failed[0]["reason"] and failed[0]["variant"] == "lr 1e30",
              f"{name}: failed: {[(record['id'], record['reason']) for record in failed]}\n{err}")
        for key, record in here.items():
            check(record["status"] == alone[key]["status"], f"{name}, {key}: {record['status']}: {record['reason']}")
            check(figures(record) == figures(alone[key]), f"{name}, {key}: validation figures of one process and of several")
        trained = [record for record in here.values() if record["kind"] == "search" and record["status"] == "complete"]
        check(all(record["communication"]["processes"] == args.processes and record["test_set"]["reads"] == 0 for record in trained),
              f"{name}: processes, or the test set was read")
        chosen, other = here["search-chosen"], alone["search-chosen"]
        check(chosen["variant"] == other["variant"] != "lr 1e30", f"{name}: chosen {chosen['variant']} and {other['variant']}")
        check(chosen["evaluation"]["loss"] == other["evaluation"]["loss"] and chosen["evaluation"]["reads"] == 60,
              f"{name}: {chosen['evaluation']['loss']} against {other['evaluation']['loss']}")
        code, again, err = run(mpirun(args.processes) + [*asked, "--out", folder / name])
        kept = sum(map(int, re.findall(r"(\d+) kept from before", again)))
        check(code == 0 and kept == len(trained) and "read once" in again,
              f"{name} again: exit {code}\n{again}{err}")
        print(f"{name} of {rates}: chose {chosen['variant']} in {args.processes} processes as in one; lr 1e30 has failed alone")
