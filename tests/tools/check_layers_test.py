#!/usr/bin/env python3
"""tools/check_layers on made-up trees: every rule is broken, and a tree that keeps them all passes."""

import re
import runpy
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "check_layers"
sys.path.insert(0, str(TOOL.parent))  # from which the tool imports cpp_scopes.py

GOOD = {
    "base/error.h": "",
    "data/loader.cc": '#include "base/error.h"\n#include <vector>\n',
    "graph/graph.h": "",
    "engine/engine.h": '#include "graph/graph.h"\n',
    "engine/cpu/engine.h": '#include "engine/engine.h"\n',
    "engine/cpu/engine.cc": '#include "engine/cpu/engine.h"\n',
    "engine/reference/engine.h": '#include "engine/engine.h"\n',
    "engine/make.cc": '#include "engine/cpu/engine.h"\n#include "engine/reference/engine.h"\n',
    "engine/make.h": "",
    "comm/communicator.h": "",
    "comm/local/group.h": "",
    "comm/make.cc": '#include "comm/local/group.h"\n',
    "measure/record.h": "",
    "train/run.cc": '#include "engine/engine.h"\n#include "comm/communicator.h"\n#include "measure/record.h"\n',
    "study/study.cc": '#include "measure/record.h"\n',
    "report/build.cc": "",
    "cluster/make_backend.cc": '#include "engine/make.h"\n#include "engine/cpu/engine.h"\n',
}


def check(files):
    """Exit code and output of the tool on a tree of these files below src/."""
    with tempfile.TemporaryDirectory() as root:
        for name, text in files.items():
            path = Path(root) / "src" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        done = subprocess.run([sys.executable, str(TOOL), root], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr


def breaches(text):
    """The lines of the output without the last one, which says where to read on."""
    *lines, last = text.strip().splitlines()
    assert "docs/architecture.md#folders" in last, text
    return lines


class CheckLayers(unittest.TestCase):
    def test_a_tree_that_keeps_the_table_passes(self):
        code, text = check(GOOD)
        self.assertEqual(code, 0, text)
        self.assertIn(f"{len(GOOD)} files", text)

    def breaks(self, file, line, rule, before=""):
        code, text = check({**GOOD, file: before + line + "\n"})
        self.assertEqual(code, 1, text)
        self.assertIn(f"src/{file}:{before.count(chr(10)) + 1}: {rule}", text)
        self.assertEqual(len(breaches(text)), 1, text)

    def test_base_includes_nothing_of_ours(self):
        self.breaks("base/clock.h", '#include "graph/graph.h"', "base may not include graph", "#pragma once\n\n")

    def test_the_lower_folders_never_include_one_another(self):
        self.breaks("data/bad.h", '#include "measure/record.h"', "data may not include measure")
        self.breaks("comm/bad.h", '#include "graph/graph.h"', "comm may not include graph")

    def test_study_sees_no_engine(self):
        self.breaks("study/bad.cc", '#include "engine/engine.h"', "study may not include engine")

    def test_report_sees_no_train(self):
        self.breaks("report/bad.cc", '  #  include "train/run.cc"', "report may not include train")

    def test_train_sees_only_interfaces(self):
        self.breaks("train/bad.cc", '#include "engine/make.h"', "train may include of engine only engine/engine.h")
        self.breaks("train/bad.cc", "#include <comm/local/group.h>", "train may include of comm only")

    def test_engines_never_include_one_another(self):
        self.breaks("engine/cpu/bad.cc", '#include "engine/reference/engine.h"',
                    "backends never include one another")

    def test_a_path_beside_the_file_is_seen_through(self):
        self.breaks("engine/cpu/bad.cc", '#include "../reference/engine.h"',
                    "backends never include one another")

    def test_only_make_and_cli_name_a_backend(self):
        self.breaks("engine/other.cc", '#include "engine/cpu/engine.h"', "only cli, cluster and engine/make.cc name")
        self.breaks("comm/other.cc", '#include "comm/local/group.h"', "only cli, cluster and comm/make.cc name")

    def cycle(self, files, *steps):
        """Exactly one breach, which goes through these lines in this order, wherever it begins."""
        code, text = check({**GOOD, **files})
        self.assertEqual(code, 1, text)
        self.assertEqual(len(breaches(text)), 1, text)
        said = breaches(text)[0].split("cycle of includes")[1].split(": ", 1)[1].split("; then ")
        self.assertIn(list(steps), [said[i:] + said[:i] for i in range(len(said))], text)
        self.assertTrue(text.startswith(said[0].split(" ")[0] + ": "), text)
        return text

    def test_two_headers_in_a_cycle(self):
        self.cycle({"base/a.h": '#include "base/b.h"\n', "base/b.h": '\n#include "a.h"\n'},
                   "src/base/a.h:1 includes base/b.h", "src/base/b.h:2 includes base/a.h")

    def test_a_cycle_through_sources(self):
        self.cycle({"base/a.h": "", "base/a.cc": '#include "base/a.h"\n#include "base/b.h"\n',
                    "base/b.h": "", "base/b.cc": '#include "base/b.h"\n\n#include "base/a.h"\n'},
                   "src/base/a.cc:2 includes base/b.h", "src/base/b.cc:3 includes base/a.h")

    def test_a_cycle_of_three_is_shown_by_its_shortest_way(self):
        text = self.cycle({"base/a.h": '#include "base/b.h"\n', "base/b.h": '#include "base/c.h"\n',
                           "base/c.h": '#include "base/d.h"\n', "base/d.h": '#include "base/a.h"\n',
                           "base/c.cc": '#include "base/a.h"\n'},
                          "src/base/a.h:1 includes base/b.h", "src/base/b.h:1 includes base/c.h",
                          "src/base/c.cc:1 includes base/a.h")
        self.assertIn("among 4 components", text)

    def test_a_cycle_through_an_inc_file(self):
        self.cycle({"base/a.h": '#include "base/b.inc"\n', "base/b.inc": '#include "base/a.h"\n'},
                   "src/base/a.h:1 includes base/b.inc", "src/base/b.inc:1 includes base/a.h")

    def test_every_group_in_a_cycle_is_named(self):
        code, text = check({**GOOD, "base/a.h": '#include "base/b.h"\n', "base/b.h": '#include "base/a.h"\n',
                            "data/a.h": '#include "data/b.h"\n', "data/b.h": '#include "data/a.h"\n'})
        self.assertEqual(code, 1, text)
        self.assertEqual(len(breaches(text)), 2, text)

    def test_includes_that_meet_again_are_no_cycle(self):
        code, text = check({**GOOD, "base/a.h": '#include "base/b.h"\n#include "base/c.h"\n',
                            "base/a.cc": '#include "base/a.h"\n#include "base/c.h"\n',
                            "base/b.h": '#include "base/d.h"\n', "base/c.h": '#include "base/d.h"\n', "base/d.h": ""})
        self.assertEqual(code, 0, text)

    def test_a_local_name_is_unique_in_its_folder(self):
        local = "\nnamespace report {\nnamespace {\nint row_of(int x) { return x; }\n}\n}\n"
        overload = "namespace report {\nnamespace {\nint row_of(long x) { return 1; }\nint row_of(char x) { return 1; }\n}\n}\n"
        static = "namespace report {\nstatic int row_of() { return 1; }\n}\n"
        template = "namespace report {\nnamespace {\ntemplate <typename T>\nvoid row_of(T a) {}\n}\n}\n"
        for text, lines in ((local, (4,)), (overload, (3, 4)), (static, (2,)), (template, (3,))):
            code, said = check({**GOOD, "report/a.cc": local, "report/sections/b.cc": text})
            self.assertEqual(code, 1, said)
            self.assertEqual([line.split(" too;")[0] for line in breaches(said)],
                             [f"src/report/sections/b.cc:{line}: row_of() is local to this file and stands in src/report/a.cc:4"
                              for line in lines])
            self.assertIn("let its name say of what", said)

    def test_a_local_name_is_none_of_its_folders_headers(self):
        text = "namespace report {\nnamespace {\nint row_of(int x) { return x; }\n}\n}\n"
        header = "namespace report {\nint row_of(long x);\n}\n"
        code, said = check({**GOOD, "report/a.cc": text, "report/b.h": header})
        self.assertEqual(code, 1, said)
        self.assertIn("src/report/a.cc:3: row_of() is local to this file and stands in src/report/b.h:2 too", said)
        code, said = check({**GOOD, "report/a.cc": text, "report/b.h": header.replace("report", "other")})
        self.assertEqual(code, 0, said)

    def test_names_may_be_equal_where_they_cannot_meet(self):
        local = "namespace {\nint row_of(int x) { return x; }\n}\n"
        member = "namespace {\nstruct A {\n  int row_of() { return 1; }\n};\n}\nint B::row_of() { return 1; }\n"
        several = "namespace {\nint row_of();\nint row_of(int x) { return x; }\nint row_of(long x) { return 1; }\n}\n"
        for other in ({"measure/b.cc": local}, {"report/b.cc": member}, {"report/b.cc": "int f() { return row_of(1); }\n"}):
            code, said = check({**GOOD, "report/a.cc": several, **other})
            self.assertEqual(code, 0, said)
        code, said = check({**GOOD, "engine/cpu/a.cc": local, "engine/cpu/b.cc": local, "engine/cpu/c.cc": local,
                            "engine/cpu/d.cc": local})
        self.assertEqual(code, 0, said)

    def test_the_build_compiles_alone_what_the_tool_lets_be_alike(self):
        separate = set(runpy.run_path(str(TOOL))["SEPARATE"])
        build = (ROOT / "src" / "CMakeLists.txt").read_text()
        lists = re.findall(r"^(?:file|list)\((?:GLOB_RECURSE|APPEND) alike .*?\)", build, re.M | re.S)
        alike = set(re.findall(r"SOURCE_DIR\}/([\w/.]+)", " ".join(lists)))
        self.assertEqual(alike - separate, set())
        of_modules = {f"{folder}/{file}" for folder, files in re.findall(r"^ *paceline_module\(\w+ (\w+) ([^)]*?)\s+LINKS", build, re.M)
                      for file in files.split()}
        for file in separate - alike - of_modules:  # the program's own, and of the module that has more than files
            self.assertRegex(build, r"(?m)^ *add_\w+\([^)]*SOURCE_DIR\}/" + re.escape(file), file)
        self.assertEqual(of_modules - separate, {"comm/gloo/meeting_server.cc"})

    def test_a_file_outside_the_folders_is_named(self):
        self.breaks("paceline.cc", "", "stands in no folder of docs/architecture.md")
        self.breaks("utils/string.h", "", "stands in no folder of docs/architecture.md")

    def test_the_page_says_what_the_tool_holds(self):
        allowed = runpy.run_path(str(TOOL))["ALLOWED"]
        words = {"all": set(allowed) - {"cli"}, "nothing of ours": set()}
        page = (ROOT / "docs" / "architecture.md").read_text()
        rows = re.findall(r"^\| `(\w+)` \|[^|]*\| ([^|]*) \|", page, re.M)
        self.assertEqual({folder: words.get(may, set(may.split(", "))) for folder, may in rows}, allowed)

    def test_a_missing_tree_is_said(self):
        done = subprocess.run([sys.executable, str(TOOL), "/nonexistent"], capture_output=True, text=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("is no directory", done.stderr)


if __name__ == "__main__":
    unittest.main()
