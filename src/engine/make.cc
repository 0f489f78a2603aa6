#include "engine/make.h"

#include <vector>

#include "base/error.h"
#include "base/nearest.h"
#include "engine/cpu/engine.h"
#include "engine/reference/engine.h"

namespace paceline::engine {
namespace {

struct DeviceRow {
  const char* device;
  std::unique_ptr<Engine> (*compile)(const graph::Graph&, const CompileOptions&);
  graph::MemoryPlan (*plan)(const graph::Graph&, const CompileOptions&);
  std::string (*prepare)(const graph::Graph&, const CompileOptions&);
  bool (*has_bf16_units)();
};

/// Every engine there is. A new one is a row here and a folder beside reference/.
constexpr DeviceRow kEngines[] = {
    {"cpu", cpu::compile, cpu::plan, cpu::prepare, cpu::has_bf16_units},
    {"reference", reference::compile, reference::plan,
     [](const graph::Graph&, const CompileOptions&) { return std::string(); }, [] { return false; }},
};

const DeviceRow& row_of(const std::string& device) {
  std::vector<std::string> known;
  for (const DeviceRow& row : kEngines) {
    if (device == row.device) return row;
    known.emplace_back(row.device);
  }
  base::fail(base::ErrorKind::usage, "device '{}' is not known{}", device, base::suggestion(device, known));
}

}  // namespace

std::unique_ptr<Engine> compile(const std::string& device, const graph::Graph& graph,
                                const CompileOptions& options) {
  return row_of(device).compile(graph, options);
}

graph::MemoryPlan plan(const std::string& device, const graph::Graph& graph, const CompileOptions& options) {
  return row_of(device).plan(graph, options);
}

std::string prepare(const std::string& device, const graph::Graph& graph, const CompileOptions& options) {
  return row_of(device).prepare(graph, options);
}

bool has_bf16_units(const std::string& device) { return row_of(device).has_bf16_units(); }

}  // namespace paceline::engine
