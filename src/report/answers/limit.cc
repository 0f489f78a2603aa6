#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/breakdown.h"
#include "report/answers/answers.h"
#include "report/answers/wording.h"
#include "report/sections/parts.h"
#include "report/text.h"

// What limits: the ledger of the operating point's step; and what became of one worker's step.

namespace paceline::report {
namespace {

struct Share {
  const char* name;  ///< as the large figure
  const char* part;  ///< inside a sentence
  double seconds;
};

std::vector<Share> shares_of(const analysis::Parts& parts) {
  std::vector<Share> shares{{"Compute", "computing", parts.compute()},
                            {"Waiting", "waiting for a later worker", parts.exposed_wait},
                            {"Data", "waiting for data", parts.data_wait},
                            {"Communication", "moving gradients", parts.exposed_transfer},
                            {"Other", "copying and other", parts.copy + parts.other}};
  std::stable_sort(shares.begin(), shares.end(),
                   [](const Share& a, const Share& b) { return a.seconds > b.seconds; });
  return shares;
}

/// What could be changed about a phase, and what it can give at most.
std::string hint_for(const std::string& name, double of_step) {
  constexpr double kWorthIt = 0.02;
  if (of_step < kWorthIt) return "";
  const std::string gain = about(of_step);
  if (name == "waiting") return fmt::format("pin workers, quiet the machine: at most {}", gain);
  if (name == "transfer") return fmt::format("larger --bucket-mb or batch: at most {}", gain);
  if (name == "data") return fmt::format("more --loader-threads: at most {}", gain);
  return "";
}

}  // namespace

Answer limit_answer(const Subject& subject) {
  constexpr const char* kQuestion = "What limits?";
  const analysis::Cell* best = subject.best();
  if (best == nullptr) return not_measured("limit", kQuestion, "No step was measured.", "");
  const auto parts = analysis::breakdown(*best).mean;
  const auto shares = shares_of(parts);
  Answer answer{.id = "limit",
                .question = kQuestion,
                .figure = shares.front().name,
                .unit = about(shares.front().seconds / parts.total()),
                .evidence = "step"};
  std::vector<std::string> rest;
  for (std::size_t i = 1; i < shares.size() && rest.size() < 3; ++i)
    if (shares[i].seconds > 0)
      rest.push_back(fmt::format("{} {}", shares[i].part, about(shares[i].seconds / parts.total())));
  if (!rest.empty()) {
    answer.sentence = fmt::format("{}.", fmt::join(rest, ", "));
    answer.sentence[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(answer.sentence[0])));
  }
  judge(answer, *best);
  // Two phases of one size: which of them limits is not decided.
  constexpr double kApart = 0.1;
  if (shares[0].seconds - shares[1].seconds < kApart * parts.total()) {
    answer.certainty = Certainty::not_decided;
    answer.chip = "two alike";
  }
  answer.value = shares.front().seconds / parts.total();
  for (const measure::Record* record : best->records) answer.records.push_back(record->id);
  answer.n = static_cast<int>(best->steps_measured);
  return answer;
}

std::optional<Waterfall> step_waterfall(const Subject& subject) {
  if (subject.row == nullptr) return std::nullopt;
  const auto& baseline = *subject.group->baseline;
  const auto from = analysis::breakdown(baseline).mean, to = analysis::breakdown(*subject.best()).mean;
  Waterfall waterfall{.id = "step",
                      .note = "Means of a step over ranks and repeats, which add up; medians would not.",
                      .from_name = way_of(baseline),
                      .to_name = way_of(*subject.best()),
                      .from = from.total(),
                      .to = to.total()};
  const auto change = [&](const char* name, const char* key, double before, double after) {
    waterfall.changes.push_back({name, after - before, hint_for(key, after / to.total())});
  };
  change("compute", "compute", from.compute(), to.compute());
  change("waiting for a later worker", "waiting", from.exposed_wait, to.exposed_wait);
  change("moving gradients", "transfer", from.exposed_transfer, to.exposed_transfer);
  change("waiting for data", "data", from.data_wait, to.data_wait);
  change("copying and other", "other", from.copy + from.other, to.copy + to.other);
  const auto most = std::max_element(
      waterfall.changes.begin(), waterfall.changes.end(),
      [](const auto& a, const auto& b) { return std::abs(a.seconds) < std::abs(b.seconds); });
  waterfall.finding = fmt::format("From {} to {} a step: {} changes most", duration(from.total()),
                                  duration(to.total()), most->name);
  return waterfall;
}

}  // namespace paceline::report
