#include "engine/cuda/prepare.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/cache_directory.h"
#include "base/program_path.h"
#include "engine/choose_kernels.h"
#include "engine/cuda/conv_shapes.h"
#include "engine/cuda/measure_convolutions.h"
#include "engine/cuda/program.h"

namespace paceline::engine::cuda {
namespace {

using ProblemByKey = std::map<std::string, ConvProblem>;

/// Problems that are measured between two writes of the cache. Plans that are compiled at run time make this
/// take some seconds.
constexpr std::size_t kPortion = 4;

/// The cache's name for this machine: kind and size of the device (a part of a GPU is a different device),
/// libraries, build of this program.
std::string machine_of(const DeviceFacts& facts) {
  return fmt::format("{}, {} multiprocessors, {}; {}", facts.name, facts.multiprocessors, facts.libraries,
                     base::build_id());
}

/// The end of a note about algorithms that were not measured because they need too much workspace.
std::string sentence_of(const std::vector<std::string>& left_out) {
  if (left_out.empty()) return "";
  constexpr std::size_t kNamed = 4;
  std::string text = fmt::format(
      "; {} not measured, for {} would take more than {} MB beside {} operands:",
      left_out.size() == 1 ? "one algorithm was" : fmt::format("{} algorithms were", left_out.size()),
      left_out.size() == 1 ? "it" : "they", kWorkspaceLimit >> 20, left_out.size() == 1 ? "its" : "their");
  for (std::size_t i = 0; i < left_out.size() && i < kNamed; ++i)
    text += fmt::format("{} {}", i == 0 ? "" : ",", left_out[i]);
  if (left_out.size() > kNamed) text += fmt::format(" and {} more", left_out.size() - kNamed);
  return text;
}

}  // namespace

PreparedKernels prepare(const graph::Graph& graph, const CompileOptions& options,
                        const KernelRequest& request, Runtime& runtime) {
  CompileOptions by_default = options;
  by_default.algorithms = nullptr;
  // Keeps its convolutions until the choice is made, so that plans which are requested again need not be made
  // again.
  const Program program(graph, by_default, runtime);
  const std::vector<ConvChoice> choices = program.convolutions();
  const DeviceFacts facts = runtime.facts();
  KernelProblems named{.chosen_by = facts.is_gpu ? "heuristics" : "rules", .defaults = {}, .refusal = {}};
  ProblemByKey problems;
  for (const ConvChoice& choice : choices) {
    if (choice.problem.is_fused() && !request.measures_fused) continue;  // computed by separate kernels
    problems.emplace(describe(choice.problem), choice.problem);
    named.defaults[describe(choice.problem)] = choice.algorithm;
  }
  named.refusal = [&](const std::string& key, const std::string& name) -> std::optional<std::string> {
    if (problems.at(key).is_fused() && name == kSeparate) return std::nullopt;
    try {
      static_cast<void>(runtime.make_convolution(problems.at(key), name));
      return std::nullopt;
    } catch (const AlgorithmRefused& refused) {
      return refused.why();
    }
  };
  std::vector<ConvProblem> all;
  for (const auto& [key, problem] : problems) all.push_back(problem);
  std::vector<std::string> left_out;
  std::optional<ConvolutionTimer> timer;  // one for all portions, since each would allocate its own memory
  std::string no_room;
  const auto measure = [&](const std::vector<std::string>& keys) {
    KernelAlgorithms found;
    if (!timer) {
      // This memory is freed with the runtime before the run allocates any, so no memory plan counts it.
      const auto needed = static_cast<std::int64_t>(ConvolutionTimer::most_bytes(all));
      const auto free = runtime.facts().free_memory_bytes;
      if (facts.is_gpu && needed > free) {
        no_room = fmt::format(
            "problems that were not measured before are computed by the usual kernels for their shape: measuring takes "
            "up to {:.2f} GB of the device's memory, and {:.2f} GB are free",
            static_cast<double>(needed) / 1e9, static_cast<double>(free) / 1e9);
        return found;
      }
      timer.emplace(runtime).reserve(all);
    }
    for (const std::string& key : keys) {
      MeasuredConvolution measured = timer->measure(problems.at(key));
      found[key] = measured.algorithm;
      left_out.insert(left_out.end(), measured.left_out.begin(), measured.left_out.end());
    }
    return found;
  };
  KernelRequest asked = request;
  // An earlier run that does not list a fused problem computed it with separate kernels.
  if (!asked.given.empty())
    for (const auto& [key, problem] : problems)
      if (problem.is_fused()) asked.given.emplace(key, kSeparate);
  PreparedKernels prepared = choose_kernels(
      named, asked,
      {.open_cache =
           [&] {
             // Only the device knows its algorithms; choose_kernels() does not take what it refuses.
             return KernelCache(base::cache_directory(), machine_of(facts), [](const auto&) { return true; });
           },
       .measure = measure,
       .portion = kPortion});
  if (!prepared.note.empty()) prepared.note += sentence_of(left_out);
  if (!no_room.empty()) prepared.note += (prepared.note.empty() ? "kernels: " : "; ") + no_room;
  return prepared;
}

}  // namespace paceline::engine::cuda
