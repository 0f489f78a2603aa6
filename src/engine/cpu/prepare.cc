#include <fmt/core.h>

#include <set>
#include <vector>

#include "base/error.h"
#include "engine/cpu/conv/autotune.h"
#include "engine/cpu/conv/conv_op.h"
#include "engine/cpu/conv/default_table.h"
#include "engine/cpu/conv/tuning_cache.h"
#include "engine/cpu/engine.h"
#include "engine/cpu/parallel.h"
#include "engine/cpu/program.h"

namespace paceline::engine::cpu {
namespace {

/// Why the algorithm of that name cannot compute the problem here; empty: it can.
std::optional<std::string> refusal_of(const std::string& name, const ConvProblem& problem) {
  const ConvAlgorithm* const algorithm = find_algorithm(name);
  if (algorithm == nullptr) return "is no algorithm of this version";
  return algorithm->refusal(problem);
}

/// Those of `request.given` where they can be had; by default the others, which the note counts.
void take_given(const std::vector<ConvProblem>& problems, const KernelRequest& request,
                KernelAlgorithms& algorithms, std::string& note) {
  int unknown = 0, refused = 0;
  std::string reason;
  for (const ConvProblem& problem : problems) {
    const std::string key = key_of(problem);
    const auto given = request.given.find(key);
    if (given == request.given.end()) {
      ++unknown;
      continue;
    }
    if (const auto why = refusal_of(given->second, problem)) {
      const std::string sentence = fmt::format("{}: {} {}", key, given->second, *why);
      if (request.insists)
        base::fail(base::ErrorKind::usage,
                   "--kernels-from: {}; run where it can be had, or leave the option out", sentence);
      if (refused++ == 0) reason = sentence;
      continue;
    }
    algorithms[key] = given->second;
  }
  if (unknown + refused == 0) return;
  note = fmt::format(
      "kernels: {} of {} products are by other algorithms than in the run before, and round "
      "otherwise:",
      unknown + refused, problems.size());
  if (unknown > 0)
    note += fmt::format(" {} did not occur there (another batch, precision or model)", unknown);
  if (refused > 0)
    note += fmt::format("{} {} cannot be had here ({})", unknown > 0 ? "," : "", refused, reason);
}

/// What is fastest here, known from before or found out now.
void take_measured(const std::vector<ConvProblem>& problems, PreparedKernels& prepared,
                   KernelAlgorithms& algorithms) {
  const auto cache = TuningCache::here();
  const auto outcome = cache->complete(problems, autotune);
  if (!outcome.trouble.empty()) {
    prepared.note = fmt::format(
        "kernels are chosen by shape, for what this machine is fast at cannot be kept: {}", outcome.trouble);
    return;
  }
  prepared.chosen_by = "measured";
  int other = 0;
  for (const ConvProblem& problem : problems) {
    const ConvAlgorithm* const found = cache->find(problem);
    if (found == nullptr) continue;
    algorithms[key_of(problem)] = found->name;
    if (found != &default_algorithm(problem)) ++other;
  }
  if (outcome.measured == 0 && other == 0) return;
  prepared.note = fmt::format(
      "kernels: {} ({} of {} products are faster here by another method than is usual for their shape)",
      outcome.measured > 0
          ? fmt::format("measured in {:.1f} s, kept in {}", outcome.seconds, cache->file().string())
          : fmt::format("as measured before, {}", cache->file().string()),
      other, problems.size());
}

/// Each once, however many layers have it.
std::vector<ConvProblem> products_of(const graph::Graph& graph, const CompileOptions& options) {
  std::vector<ConvProblem> all;
  const Program program(graph, options, {});
  for (const auto& entry : program.ops())
    if (entry.conv != nullptr) entry.conv->plan().list(all);
  std::set<std::string> seen;
  std::erase_if(all, [&](const ConvProblem& problem) { return !seen.insert(key_of(problem)).second; });
  return all;
}

}  // namespace

PreparedKernels prepare(const graph::Graph& graph, const CompileOptions& options,
                        const KernelRequest& request) {
  const OneThread one_thread;
  const auto problems = products_of(graph, options);
  PreparedKernels prepared{.chosen_by = std::string(default_choices_name())};
  KernelAlgorithms algorithms;
  for (const ConvProblem& problem : problems) algorithms[key_of(problem)] = default_algorithm(problem).name;
  if (!request.given.empty()) {
    prepared.chosen_by = "given";
    take_given(problems, request, algorithms, prepared.note);
  } else if (request.is_measured) {
    take_measured(problems, prepared, algorithms);
  }
  prepared.algorithms = std::make_shared<const KernelAlgorithms>(std::move(algorithms));
  return prepared;
}

}  // namespace paceline::engine::cpu
