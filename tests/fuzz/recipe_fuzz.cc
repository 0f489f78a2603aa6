/// Any bytes as a recipe, for a command that the first byte chooses; and as a file of layers.

#include <array>

#include "base/error.h"
#include "cli/options/arguments.h"
#include "graph/zoo.h"
#include "input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace paceline;
  if (bytes == 0) return 0;
  static const fuzz::Directory directory;
  const auto file = directory.write("a.toml", data + 1, bytes - 1).string();
  constexpr std::array kCommands{cli::kTrain, cli::kSweep, cli::kScale, cli::kConverge, cli::kStudy};
  try {
    if (data[0] % 6 == 5)
      (void)graph::make_model(file, {.channels = 3, .height = 16, .width = 16}, 10, 0);
    else
      (void)cli::parse(kCommands[data[0] % 6], {file});
  } catch (const base::Error&) {
  }
  return 0;
}
