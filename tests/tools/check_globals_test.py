#!/usr/bin/env python3
"""tools/check_globals on made-up trees: every form of mutable state is found in its line, and no const one is."""

import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "tools" / "check_globals"

FINE = """#include <map>
#define HIDDEN int hidden = 0
namespace paceline::base {
namespace {
constexpr int kA = 1, kB[] = {1, 2};
const std::map<std::string, int> kTable = {{"a; int x = 1;", 1}, {"b", 2}};
const char* const kName = "static int s;";
inline constexpr const char* kText = R"(int raw = 3;)";
// int commented = 1;
/* static int commented;
   int too; */
using F = int (*)(int);
typedef int T;
extern int declared_elsewhere;
template <typename V = std::vector<int>> int templated(V v = {}) { return 0; }
enum class Kind { a = 1, b };
struct S {
  int member = 3;
  static constexpr int kMember = 4;
  static int function(int x = 3);
  static const int kOther;
  S() : member{1}, second(2) { int local = 0; }
  std::function<void(int)> hook = [](int x) { int inside = x; };
  bool operator==(const S&) const = default;
};
const int S::kOther = 3;
int function(int a, const std::function<void()>& f = {}) {
  int local = 3;
  static const auto table = [] { return std::map<int, int>{}; }();
  static constexpr int kOf[] = {1};
  static const std::string kCalled("x");
  for (int i = 0; i < 3; i += 2) { local += i; }
  if (auto x = f; x) { local = 1; }
  auto g = [&](int y) { int z = y; return z; };
  return local;
}
struct stat elaborated(int x) { return {}; }
class Derived final : public S { public: int x; private: std::atomic<int> n_{0}; };
}  // namespace
static_assert(sizeof(int) == 4);
extern "C" void exported(int) {}
}
"""


def check(files, *libraries):
    """Exit code and output of the tool on a tree of these files below src/."""
    with tempfile.TemporaryDirectory() as root:
        for name, text in files.items():
            path = Path(root) / "src" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        done = subprocess.run([sys.executable, str(TOOL), root, *libraries], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr


class CheckGlobals(unittest.TestCase):
    def finds(self, text, line, name, what):
        """Alone, and in the middle of what is fine, so that nothing before it hides it."""
        code, said = check({"base/x.cc": text + "\n", "base/y.cc": FINE + text + "\n" + FINE})
        self.assertEqual(code, 1, f"{text}: {said}")
        rule = f"{name} is a mutable {what}; give it an owner"
        self.assertEqual(said.strip().splitlines(),
                         [f"src/base/x.cc:{line}: {rule}", f"src/base/y.cc:{FINE.count(chr(10)) + line}: {rule}"], text)

    def test_a_tree_without_passes(self):
        code, text = check({"base/x.h": FINE, "base/y.cc": FINE + FINE})
        self.assertEqual(code, 0, text)
        self.assertIn("2 files", text)

    def test_globals(self):
        for text, name in {
            "int g = 0;": "g",
            "int g;": "g",
            "std::atomic<int> g{0};": "g",
            "static std::map<std::string, std::vector<int>> g;": "g",
            'const char* g = "a";': "g",
            "const char* g[] = {nullptr};": "g",
            "inline std::string g = std::string();": "g",
            "constinit int g = 1;": "g",
            "volatile bool g = false;": "g",
            "std::function<void(int)> g;": "g",
            "void (*g)(int) = nullptr;": "g",
            "struct sigaction g;": "g",
            "struct { int x; } g;": "g",
            "auto g = [](int x) { return x; };": "g",
            "namespace a { namespace { int g[2] = {-1, -1}; } }": "g",
            'extern "C" { int g = 0; }': "g",
            "[[maybe_unused]] alignas(64) int g = 0;": "g",
            "int S::g = 0;": "g",
        }.items():
            self.finds(text, 1, name, "global")

    def test_every_variable_of_a_declaration(self):
        code, text = check({"base/x.cc": "int a = f(1, 2), *b = nullptr, c{3};\n"})
        self.assertEqual(code, 1, text)
        self.assertEqual([line.split()[1] for line in text.strip().splitlines()], ["a", "b", "c"])

    def test_static_members(self):
        self.finds("class C {\n  static int g;\n};", 2, "g", "static member")
        self.finds("class C {\n public:\n  inline static std::map<int, int> g = {};\n};", 3, "g", "static member")

    def test_local_statics(self):
        self.finds("int f() {\n  static int g = 0;\n  return g;\n}", 2, "g", "local static")
        self.finds("int f() {\n  static thread_local Place g;\n}", 2, "g", "local static")
        self.finds("int f() {\n  thread_local int g = 0;\n}", 2, "g", "local static")
        self.finds("T& f() {\n  static T g(1, name());\n  return g;\n}", 2, "g", "local static")
        self.finds("T& f() {\n  static T* g = new T{1};\n  return *g;\n}", 2, "g", "local static")

    def test_wherever_they_stand(self):
        self.finds("int f() {\n  for (int i = 0; i < 3; i += 2) { h(); }\n  static int g;\n}", 3, "g", "local static")
        self.finds("int f() {\n  if (auto x = h()) {}\n  static int g;\n}", 3, "g", "local static")
        self.finds("auto f() {\n  return h([&] {\n    static int g;\n  });\n}", 3, "g", "local static")
        self.finds("struct S {\n  S() : a_{1}, b_{2} {\n    static int g;\n  }\n};", 3, "g", "local static")
        self.finds("struct S {\n  int f() const override {\n    static int g;\n  }\n};", 3, "g", "local static")
        self.finds("template <typename T>\nint f() {\n  static T g;\n}", 3, "g", "local static")
        self.finds("const auto f = [] {\n  static int g;\n  return g;\n};", 2, "g", "local static")

    def test_an_exception_is_one_variable_of_one_file(self):
        handler = ("std::atomic<int> caught_signal{0};\nstd::atomic<int> pipe_end{-1};\nstd::atomic<long> caught_at{0};\n"
                   "std::atomic<bool> has_repeated{false}, is_suspended{false};\nint pipe_ends[2] = {-1, -1};\n")
        self.assertEqual(check({"cluster/interrupt.cc": handler})[0], 0)
        self.assertEqual(check({"cli/other.cc": handler})[0], 1)
        code, text = check({"cluster/interrupt.cc": handler + "int more;\n"})
        self.assertEqual(code, 1)
        self.assertIn("src/cluster/interrupt.cc:6: more is", text)

    def test_an_exception_that_is_gone_is_named(self):
        code, text = check({"cluster/interrupt.cc": "int main() {}\n"})
        self.assertEqual(code, 1)
        self.assertIn("src/cluster/interrupt.cc:1: caught_signal is gone", text)

    @unittest.skipUnless(shutil.which("c++") and shutil.which("nm"), "no compiler")
    def test_nm_finds_what_a_macro_declares(self):
        source = ("#define HIDDEN int hidden_state = 3\nnamespace paceline { HIDDEN; extern const int kMade;\n"
                  "int make(); const int kMade = make(); }\n")
        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder) / "x.o"
            subprocess.run(["c++", "-c", "-x", "c++", "-o", made, "-"], input=source, text=True, check=True)
            code, text = check({"base/x.cc": source}, str(made))
        self.assertEqual(code, 1, text)
        self.assertIn("x.o:0: hidden_state can be written", text)
        self.assertNotIn("kMade", text)

    def test_a_missing_tree_is_said(self):
        done = subprocess.run([sys.executable, str(TOOL), "/nonexistent"], capture_output=True, text=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("is no directory", done.stderr)


if __name__ == "__main__":
    unittest.main()
