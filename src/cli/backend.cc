#include "cli/backend.h"

#include "cli/doctor.h"
#include "comm/make.h"
#include "engine/make.h"

namespace paceline::cli {

train::Backend make_backend(const std::string& device) {
  return {
      .compile = [device](const graph::Graph& graph,
                          const engine::CompileOptions& how) { return engine::compile(device, graph, how); },
      .prepare = [device](const graph::Graph& graph,
                          const engine::CompileOptions& how) { return engine::prepare(device, graph, how); },
      .plan = [device](const graph::Graph& graph,
                       const engine::CompileOptions& how) { return engine::plan(device, graph, how); },
      .communicators =
          [](int ranks, std::chrono::seconds deadline) {
            return comm::make_local(ranks, {.deadline = deadline});
          },
      .has_bf16_units = engine::has_bf16_units(device),
      .libraries = libraries(),
  };
}

}  // namespace paceline::cli
