/// The rows of options about trainings to an accuracy.

#include <fmt/format.h>

#include "base/error.h"
#include "cli/options/option_rows.h"

namespace paceline::cli {
namespace {

constexpr const char* kReached = "Trainings to an accuracy";
using Reference = S::Reference;
using Target = S::Target;

/// "2h", "90min", "30s", "1.5d" in seconds.
double length_of_time(std::string_view text) {
  constexpr std::pair<std::string_view, double> kUnits[]{{"min", 60}, {"s", 1}, {"h", 3600}, {"d", 86400}};
  const auto number = text.substr(0, text.find_last_of("0123456789.") + 1);
  for (const auto& [unit, seconds] : kUnits)
    if (text.substr(number.size()) == unit) return seconds * decimal(number, {.open_below = true});
  base::fail(ErrorKind::usage, "must be a time with its unit, such as 30s, 90min, 2h or 1.5d, got '{}'",
             text);
}

constexpr Row kTargetRows[] = {
    {"accuracy", "A", kReached,
     "the accuracy to be reached, as a part of 1, such as 0.97; reference check has it from the reference, unless that is "
     "MLPerf's",
     kReference | kTarget, at<&S::accuracy>({.least = 0, .most = 1, .open_below = true})},
    {"out", "FILE", kReached, "make: the reference that is written; its directory must exist", kReference,
     at<&S::reference, &Reference::out>()},
    {"against", "FILE", kReached,
     "check: the reference, from make or from MLPerf; exit code 1 where trainings are slower or faster, 2 where that is "
     "not decided",
     kReference, at<&S::reference, &Reference::against>()},
    {"deadline", "TIME", kReached,
     "the cheapest number of workers that reaches the accuracy within this time is asked for, such as 90min or 2h",
     kTarget,
     Field<S>([](S& s, Text t) { s.target.deadline_s = length_of_time(t); },
              [](const S& s) {
                return s.target.deadline_s > 0 ? fmt::format("{:g}s", s.target.deadline_s) : std::string();
              })},
    {"budget", "X", kReached,
     "the fastest number of workers that costs no more is asked for: in the price's currency, else in worker-hours",
     kTarget, at<&S::target, &Target::budget>({.open_below = true})},
    {"price", "X", kReached,
     "of one worker for an hour (default: node_hour of the cluster file, else costs are worker-hours)",
     kTarget, at<&S::target, &Target::price>({.open_below = true})},
};
static_assert(train::has_rows<S>(kTargetRows, "accuracy", "price"));

}  // namespace

std::span<const Row> target_rows() { return kTargetRows; }

}  // namespace paceline::cli
