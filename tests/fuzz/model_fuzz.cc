/// Any bytes as a file of layers: what is accepted has a layout, an initial value for each weight, and names
/// that a checkpoint can hold.

#include <cstdlib>
#include <set>
#include <string>

#include "base/error.h"
#include "graph/layout.h"
#include "graph/plan.h"
#include "graph/zoo.h"
#include "input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace paceline;
  static const fuzz::Directory directory;
  try {
    const auto file = directory.write("a.toml", data, bytes).string();
    const auto graph = graph::make_model(file, {.channels = 3, .height = 16, .width = 16}, 10, 0);
    (void)graph::fingerprint(graph);
    (void)graph::training_flops(graph);
    if (graph::flat_layout(graph).slot_of_parameter.size() != graph.parameters.size()) std::abort();
    std::set<std::string> names;
    for (const auto& parameter : graph.parameters)
      if (!names.insert(parameter.name).second || parameter.name.starts_with("optimizer.")) std::abort();
  } catch (const base::Error&) {
  }
  return 0;
}
