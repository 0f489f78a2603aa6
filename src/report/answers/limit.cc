#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/steps/breakdown.h"
#include "report/answers/answers.h"
#include "report/answers/wording.h"
#include "report/sections/parts.h"
#include "report/text.h"

// What limits: the ledger of the operating point's step.

namespace paceline::report {
namespace {

struct Share {
  const char* name;  ///< as the heading
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
  // If two phases are equally large, it is undecided which of them limits.
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

}  // namespace paceline::report
