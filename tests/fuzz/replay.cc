/// Runs every fuzz target over its corpus, without libFuzzer: an ordinary test with any compiler.
///     fuzz_replay CORPUS         CORPUS/<target>/<file>

#include <fmt/core.h>

#include <cstdint>
#include <filesystem>
#include <utility>

#include "base/file.h"

#define PACELINE_TARGETS(DO) DO(image) DO(tar) DO(cifar) DO(idx) DO(safetensors) DO(recipe)
#define PACELINE_DECLARE(name) int fuzz_##name(const std::uint8_t* data, std::size_t bytes);
extern "C" {
PACELINE_TARGETS(PACELINE_DECLARE)
}

int main(int argc, char** argv) {
  namespace fs = std::filesystem;
  if (argc != 2) return 2;
  using Run = int (*)(const std::uint8_t*, std::size_t);
#define PACELINE_ROW(name) std::pair<const char*, Run>{#name, fuzz_##name},
  for (const auto& [name, run] : {PACELINE_TARGETS(PACELINE_ROW)}) {
    int inputs = 0;
    for (const auto& entry : fs::directory_iterator(fs::path(argv[1]) / name)) {
      const auto text = paceline::base::read_file(entry.path());
      run(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
      ++inputs;
    }
    fmt::print("{}: {} inputs\n", name, inputs);
    if (inputs == 0) return 1;
  }
  return 0;
}
