#pragma once

/// The backend of tests that run cells for real: the fast engine, ranks as threads, fp32.

#include <chrono>

#include "comm/make.h"
#include "engine/make.h"
#include "train/given/backend.h"

namespace paceline::study {

inline train::Backend cpu_backend() {
  return {.compile = [](const graph::Graph& graph,
                        const engine::CompileOptions& how) { return engine::compile("cpu", graph, how); },
          .plan = [](const graph::Graph& graph,
                     const engine::CompileOptions& how) { return engine::plan("cpu", graph, how); },
          .communicators =
              [](int ranks, std::chrono::seconds deadline) {
                return comm::make_local(ranks, {.deadline = deadline});
              }};
}

}  // namespace paceline::study
