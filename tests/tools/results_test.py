#!/usr/bin/env python3
"""tools/results: pages agree with their records, and --check sees each way in which they may not."""

import json
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "results"
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tools"))
from result_figures import Figure, accuracy, estimate, pooled, ratio  # noqa: E402


def run(root, *options):
    done = subprocess.run([sys.executable, str(TOOL), *options, str(root)], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


class Copy(unittest.TestCase):
    """A copy of our own pages and records, which a test may spoil."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = Path(self.folder.name)
        self.results = self.root / "docs" / "results"
        self.records = self.root / "results" / "records"
        shutil.copytree(ROOT / "docs" / "results", self.results)
        shutil.copytree(ROOT / "results", self.root / "results")

    def tearDown(self):
        self.folder.cleanup()

    def change(self, name, old, new):
        path = self.results / name
        text = path.read_text()
        self.assertIn(old, text)
        path.write_text(text.replace(old, new, 1))

    def assert_refused(self, *sentences):
        code, text = run(self.root, "--check")
        self.assertEqual(code, 1, text)
        for sentence in sentences:
            self.assertIn(sentence, text)

    def test_as_it_is(self):
        code, text = run(self.root, "--check")
        self.assertEqual(code, 0, text)

    def test_the_readme_of_the_tree_has_a_table_with_its_own_links(self):
        readme = self.root / "README.md"
        readme.write_text("<!-- table: model, ratio, machine, record\nstep-vs-pytorch-amx-bf16-batch128.json\n-->\n<!-- end -->\n")
        self.assert_refused("README.md:4: is not what its records say")
        self.assertEqual(run(self.root)[0], 0)
        self.assertIn("[amx](docs/results/machines.md#amx) | [json](results/records/step-vs-pytorch-amx-bf16-batch128.json)", readme.read_text())
        self.assertEqual(run(self.root, "--check")[0], 0)

    def test_a_changed_record_is_seen_on_its_pages(self):
        record = self.records / "step-vs-pytorch-amx-bf16-batch128.json"
        said = json.loads(record.read_text())
        said["results"][0]["ratio_median"] += 1
        record.write_text(json.dumps(said))
        self.assert_refused("docs/results/README.md", "docs/results/steps.md", "is not what its records say")
        self.assertEqual(run(self.root)[0], 0)
        self.assertEqual(run(self.root, "--check")[0], 0)
        self.assertIn("**4.48 [2.31, 3.92]**", (self.results / "README.md").read_text())

    def test_a_changed_sample_changes_what_is_worked_out_of_it(self):
        record = self.records / "one-core-workers" / "amx-32" / "scale-weak-w2-b32-r0.json"
        said = json.loads(record.read_text())
        for rank in said["ranks"]:
            rank["step_s"] = [2 * seconds for seconds in rank["step_s"]]
        record.write_text(json.dumps(said))
        self.assert_refused("docs/results/scaling.md")

    def test_a_repeat_beside_busy_programs_is_left_out(self):
        folder = self.records / "one-core-workers" / "amx-32"
        before = (self.results / "scaling.md").read_text()
        record = folder / "scale-weak-w2-b32-r0.json"
        said = json.loads(record.read_text())
        for rank in said["ranks"]:
            rank["step_s"] = [9 * seconds for seconds in rank["step_s"]]
        said["window"]["others_cores"] = 0.1 * said["environment"]["cores"] + 0.01
        record.write_text(json.dumps(said))
        self.assertEqual(run(self.root)[0], 0)
        left_out = (self.results / "scaling.md").read_text()
        self.assertNotEqual(left_out, before)
        record.unlink()
        self.assertEqual(run(self.root)[0], 0)
        row = lambda text: next(line for line in text.splitlines() if "one-core-workers/amx-32/" in line).split("[10 rec")[0].split("[9 rec")[0]
        self.assertEqual(row((self.results / "scaling.md").read_text()), row(left_out))

    def test_a_run_of_both_scalings_has_rows_of_both(self):
        text = (self.results / "scaling.md").read_text()
        table = text[text.index("\ncifar10-scaling-zen5\n"):].split("<!-- end -->")[0]
        cells = {tuple(cells[:3]): cells for cells in ([cell.strip() for cell in line.split("|")[1:]] for line in table.splitlines())}
        weak, strong = cells["weak", "32", "4"], cells["strong", "128", "4"]  # the same records: a global batch of 128
        self.assertEqual(weak[3:6], strong[3:6])
        self.assertNotEqual(weak[6:8], strong[6:8])  # beside one worker of 32 images, of 128

    def test_a_figure_changed_on_a_page(self):
        self.change("steps.md", "| 2.27 [2.24, 2.37] |", "| 3.27 [2.24, 2.37] |")
        self.assert_refused("docs/results/steps.md", "page:", "3.27", "records:")

    def test_a_figure_typed_into_the_prose(self):
        self.change("comm.md", "Faster than the better rival everywhere", "Faster by 23 % than the better rival everywhere")
        self.assert_refused("docs/results/comm.md", "is typed by hand")

    def test_a_record_that_nobody_cites(self):
        shutil.copy(self.records / "company.json", self.records / "company-amx-again.json")
        self.assert_refused("records/company-amx-again.json: no page cites this record")

    def test_a_record_of_no_machine(self):
        (self.records / "company.json").rename(self.records / "left.json")
        self.change("steps.md", "\ncompany.json\n", "\nleft.json\n")
        self.assert_refused("left.json belongs to 0 machines")

    def test_what_is_not_there(self):
        self.change("steps.md", "\ncompany.json\n", "\nno-such.json\n")
        self.assert_refused("no-such.json does not exist")

    def test_a_row_that_a_record_has_not(self):
        self.change("kernels.md", "layers-amx-bf16.json#all", "layers-amx-bf16.json#sideways")
        self.assert_refused("chooses no row", "backward weights")

    def test_a_claim_that_fails_its_bound(self):
        self.change("claims.toml", 'bound = "<= 2.5"', 'bound = "<= 1.8"')
        self.assertEqual(run(self.root)[0], 0)
        line = next(l for l in (self.results / "README.md").read_text().split("\n") if l.startswith("| A step beside"))
        self.assertIn("| at most 1.8 | met by the median |", line)
        self.change("claims.toml", 'bound = "<= 1.8"', 'bound = "<= 1.2"')
        self.assertEqual(run(self.root)[0], 0)
        self.assertIn("| at most 1.2 | **not met** |", (self.results / "README.md").read_text())


class Figures(unittest.TestCase):
    def test_the_interval_of_a_median(self):
        # As src/measure/statistics.cc: below six samples the extremes, then ranks that hold 95 %.
        self.assertEqual((estimate([3, 1, 2], "s").low, estimate([3, 1, 2], "s").high), (1, 3))
        nine = estimate(range(1, 10), "s")
        self.assertEqual((nine.value, nine.low, nine.high), (5, 2, 8))
        self.assertEqual(estimate([1, 2, 3, 4], "s").value, 2.5)

    def test_repeats_widen_it(self):
        figure = pooled([[10] * 20, [10] * 20, [12] * 5], "s")
        self.assertEqual((figure.value, figure.low, figure.high), (10, 10, 12))

    def test_ratios_join_intervals_on_the_logarithm(self):
        figure = ratio(Figure(2, 1, 4), Figure(1, 0.5, 2), "x")
        self.assertAlmostEqual(figure.high / figure.value, 2 ** 2 ** 0.5)
        self.assertAlmostEqual(figure.value / figure.low, 2 ** 2 ** 0.5)

    def test_seeds_widen_an_accuracy(self):
        one, three = accuracy([0.9], 1000), accuracy([0.8, 0.9, 1.0], 1000)
        self.assertAlmostEqual(one.value - one.low, 1.96 * (0.9 * 0.1 / 1000) ** 0.5)
        self.assertGreater(three.value - three.low, one.value - one.low)

    def test_how_they_are_written(self):
        self.assertEqual(str(Figure(3.4830, 2.3129, 3.9247)), "3.48 [2.31, 3.92]")
        self.assertEqual(str(Figure(1.00295, 0.99100, 1.01497)), "1.003 [0.991, 1.015]")
        self.assertEqual(str(Figure(0.937, 0.9, 0.966, "%")), "93.7 [90.0, 96.6] %")
        self.assertEqual(str(Figure(0.00007, unit="%")), "0.007 %")
        self.assertEqual(str(Figure(6349.2, unit="images/s")), "6,349")
        self.assertEqual(str(Figure(9.7e-6, unit="e")), "9.7e-6")


if __name__ == "__main__":
    unittest.main()
