/// Runs every fuzz target over its corpus, without libFuzzer: an ordinary test with any compiler.
///     fuzz_replay CORPUS..       CORPUS/<target>/<file>

#include <fmt/core.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "base/file.h"
#include "data/archive.h"

#define PACELINE_TARGETS(DO) \
  DO(image)                  \
  DO(tar)                    \
  DO(shards)                 \
  DO(cifar)                  \
  DO(pickle)                 \
  DO(idx)                    \
  DO(npz)                    \
  DO(csv)                    \
  DO(exif)                   \
  DO(safetensors) DO(weights) DO(recipe) DO(record) DO(model) DO(manifest) DO(kernels) DO(spec) DO(table)
#define PACELINE_DECLARE(name) int fuzz_##name(const std::uint8_t* data, std::size_t bytes);
extern "C" {
PACELINE_TARGETS(PACELINE_DECLARE)
}

namespace fs = std::filesystem;
using Run = int (*)(const std::uint8_t*, std::size_t);

/// Replays what lies in `folder`; how many inputs that were.
int replayed(Run run, const fs::path& folder) {
  int inputs = 0;
  if (!fs::exists(folder)) return inputs;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const auto text = paceline::base::read_file(entry.path());
    run(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
    ++inputs;
  }
  return inputs;
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
#define PACELINE_ROW(name) {#name, fuzz_##name},
  const std::map<std::string, Run> targets = {PACELINE_TARGETS(PACELINE_ROW)};
  for (int i = 1; i < argc; ++i)
    for (const auto& corpus : fs::directory_iterator(argv[i]))
      if (!targets.contains(corpus.path().filename().string())) {
        fmt::print("{}: no target replays it; PACELINE_TARGETS has no such name\n", corpus.path().string());
        return 1;
      }
  // Targets take an error for a refusal: without the module nothing would be read, and nothing said.
  (void)paceline::data::read_archive(paceline::data::ArchiveForm::tar, {});
  for (const auto& [name, run] : targets) {
    int inputs = 0;
    for (int i = 1; i < argc; ++i) inputs += replayed(run, fs::path(argv[i]) / name);
    fmt::print("{}: {} inputs\n", name, inputs);
    if (inputs == 0) return 1;
  }
  return 0;
}
