#!/usr/bin/env python3
"""tools/check_links on made-up trees: which links are dead, and what is none."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "tools" / "check_links"


def links(files):
    """Exit code and output of the tool on a tree of these files."""
    with tempfile.TemporaryDirectory() as root:
        for name, text in {"README.md": "# A\n", **files}.items():
            path = Path(root) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        done = subprocess.run([sys.executable, str(TOOL), root], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr


class Links(unittest.TestCase):
    def test_live_ones(self):
        code, text = links({
            "README.md": "[a](docs/a.md#what-it-is-2026) [b](docs/b/) [c](https://example.org/no) [d](#a)\n# A\n",
            "docs/a.md": "## What `it` is (2026)\n## Twice\n## Twice\n<a id=\"own\"></a>\n[e](#twice-1) [f](#own) [g](b/c.txt)\n",
            "docs/b/c.txt": "",
        })
        self.assertEqual(code, 0, text)

    def test_a_file_that_is_not_there(self):
        code, text = links({"docs/a/b.md": "one\n[x](../c.md)\n"})
        self.assertEqual(code, 1)
        self.assertIn("docs/a/b.md:2: ../c.md: there is no such file", text)

    def test_a_heading_that_is_not_there(self):
        code, text = links({"docs/a.md": "# One\n[x](#two)\n", "README.md": "[y](docs/a.md#three)\n"})
        self.assertEqual(code, 1)
        self.assertIn("docs/a.md:2: #two: a.md has no such heading", text)
        self.assertIn("README.md:1: docs/a.md#three: a.md has no such heading", text)

    def test_code_has_no_links_and_no_headings(self):
        code, text = links({"docs/a.md": "`[x](no.md)`\n\n    [x](no.md)\n\n```\n[x](no.md)\n# no\n```\n"})
        self.assertEqual(code, 0, text)
        code, text = links({"docs/a.md": "[x](#no)\n```\n# no\n```\n"})
        self.assertEqual(code, 1, text)

    def test_an_indented_line_of_a_list_is_no_code(self):
        code, text = links({"docs/a.md": "- one\n    [x](no.md)\n"})
        self.assertEqual(code, 1, text)


if __name__ == "__main__":
    unittest.main()
