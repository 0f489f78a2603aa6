#include "engine/choose_kernels.h"

#include <fmt/core.h>

#include <vector>

#include "base/error.h"

namespace paceline::engine {
namespace {

/// Takes the algorithms of `request.given` that are available here, and the defaults for other problems.
/// `note` says how many those are.
void take_given(const KernelProblems& problems, const KernelRequest& request, KernelAlgorithms& algorithms,
                std::string& note) {
  int unknown = 0, refused = 0;
  std::string reason;
  for (auto& [problem, algorithm] : algorithms) {
    const auto given = request.given.find(problem);
    if (given == request.given.end()) {
      ++unknown;
      continue;
    }
    if (const auto why = problems.refusal(problem, given->second)) {
      const std::string sentence = fmt::format("{}: {} {}", problem, given->second, *why);
      if (request.insists)
        base::fail(base::ErrorKind::usage,
                   "--kernels-from: {}; run where this algorithm can be used, or leave the option out",
                   sentence);
      if (refused++ == 0) reason = sentence;
      continue;
    }
    algorithm = given->second;
  }
  if (unknown + refused == 0) return;
  note = fmt::format(
      "kernels: {} of {} problems (a convolution or dense layer in one direction) use other algorithms than "
      "in the earlier run, and are rounded differently:",
      unknown + refused, algorithms.size());
  if (unknown > 0)
    note += fmt::format(" {} did not occur there (another batch, precision, model or device)", unknown);
  if (refused > 0)
    note += fmt::format("{} {} cannot be computed here as they were there ({})", unknown > 0 ? "," : "",
                        refused, reason);
}

/// Takes the fastest algorithms on this machine, from the cache or by measuring now.
void take_measured(const KernelProblems& problems, const KernelMeasuring& measuring,
                   PreparedKernels& prepared, KernelAlgorithms& algorithms) {
  KernelCache cache = measuring.open_cache();
  std::vector<std::string> names;
  for (const auto& [problem, usual] : problems.defaults) names.push_back(problem);
  const auto outcome = cache.complete(names, measuring.measure, measuring.portion);
  if (!outcome.trouble.empty()) {
    prepared.note =
        fmt::format("kernels are chosen by shape, because measurements of this machine cannot be stored: {}",
                    outcome.trouble);
    return;
  }
  if (outcome.left == names.size()) return;
  prepared.chosen_by = "measured";
  int other = 0;
  for (auto& [problem, algorithm] : algorithms) {
    const auto found = cache.find(problem);
    if (!found || *found == algorithm || problems.refusal(problem, *found)) continue;
    algorithm = *found;
    ++other;
  }
  if (outcome.measured == 0 && other == 0) return;
  prepared.note = fmt::format(
      "kernels: {} ({} of {} problems, each a convolution or dense layer in one direction, are faster here "
      "by another algorithm than the usual one for their shape)",
      outcome.measured > 0
          ? fmt::format("measured in {:.1f} s, kept in {}", outcome.seconds, cache.file().string())
          : fmt::format("as measured before, {}", cache.file().string()),
      other, algorithms.size());
}

}  // namespace

PreparedKernels choose_kernels(const KernelProblems& problems, const KernelRequest& request,
                               const KernelMeasuring& measuring) {
  PreparedKernels prepared{.chosen_by = problems.chosen_by};
  KernelAlgorithms algorithms = problems.defaults;
  if (!request.given.empty()) {
    prepared.chosen_by = "given";
    take_given(problems, request, algorithms, prepared.note);
  } else if (request.is_measured) {
    take_measured(problems, measuring, prepared, algorithms);
  }
  prepared.algorithms = std::make_shared<const KernelAlgorithms>(std::move(algorithms));
  return prepared;
}

}  // namespace paceline::engine
