#include <fmt/core.h>
#include <omp.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <oneapi/dnnl/dnnl.hpp>
#include <vector>

#include "base/cache_directory.h"
#include "base/program_path.h"
#include "engine/choose_kernels.h"
#include "engine/cpu/conv/autotune.h"
#include "engine/cpu/conv/conv_op.h"
#include "engine/cpu/conv/default_table.h"
#include "engine/cpu/engine.h"
#include "engine/cpu/kernels/isa.h"
#include "engine/cpu/parallel.h"
#include "engine/cpu/program.h"

namespace paceline::engine::cpu {
namespace {

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 1);
  return " unknown processor";
}

/// A text of everything that decides how fast kernels are: processor, instruction sets, oneDNN, and this
/// build of the program.
std::string machine_here() {
  const auto* version = dnnl_version();
  const std::string_view limit = isa_limit();
  return fmt::format("{}; own {}{}{}; oneDNN {}.{}.{}, instructions {}; {}", processor(),
                     name_of(isas_here().back()), limit.empty() ? "" : ", at most ", limit, version->major,
                     version->minor, version->patch, static_cast<unsigned>(dnnl::get_effective_cpu_isa()),
                     base::build_id());
}

using ProblemByKey = std::map<std::string, ConvProblem>;

/// The convolution problems of the network, each once even if several layers have it.
ProblemByKey problems_of(const graph::Graph& graph, const CompileOptions& options) {
  std::vector<ConvProblem> all;
  const Program program(graph, options, {});
  for (const auto& entry : program.ops())
    if (entry.conv != nullptr) entry.conv->plan().list(all);
  ProblemByKey problems;
  for (const ConvProblem& problem : all) problems.emplace(key_of(problem), problem);
  return problems;
}

KernelAlgorithms measure(const ProblemByKey& problems, const std::vector<std::string>& keys) {
  std::vector<ConvProblem> open;
  for (const std::string& key : keys) open.push_back(problems.at(key));
  const auto found = side_by_side(open, autotune);
  KernelAlgorithms algorithms;
  for (std::size_t i = 0; i < keys.size(); ++i) algorithms[keys[i]] = found[i]->name;
  return algorithms;
}

}  // namespace

PreparedKernels prepare(const graph::Graph& graph, const CompileOptions& options,
                        const KernelRequest& request) {
  const OneThread one_thread;
  const ProblemByKey problems = problems_of(graph, options);
  KernelProblems named{.chosen_by = std::string(default_choices_name()), .defaults = {}, .refusal = {}};
  for (const auto& [key, problem] : problems) named.defaults[key] = default_algorithm(problem).name;
  named.refusal = [&](const std::string& key, const std::string& name) -> std::optional<std::string> {
    const ConvAlgorithm* const algorithm = find_algorithm(name);
    if (algorithm == nullptr) return "is not an algorithm of this version";
    return algorithm->refusal(problems.at(key));
  };
  return choose_kernels(
      named, request,
      {.open_cache =
           [] {
             return KernelCache(base::cache_directory(), machine_here(),
                                [](const std::string& name) { return find_algorithm(name) != nullptr; });
           },
       .measure = [&](const std::vector<std::string>& keys) { return measure(problems, keys); }});
}

}  // namespace paceline::engine::cpu
