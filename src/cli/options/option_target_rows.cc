/// The rows of options about trainings to an accuracy.

#include "cli/options/option_rows.h"

namespace paceline::cli {
namespace {

constexpr const char* kReached = "Trainings to an accuracy";
using Reference = S::Reference;

constexpr Row kTargetRows[] = {
    {"accuracy", "A", kReached,
     "the accuracy to be reached, as a part of 1, such as 0.97; check has it from the reference (needed for make, and for "
     "a reference of MLPerf's)",
     kReference, at<&S::reference, &Reference::accuracy>({.least = 0, .most = 1, .open_below = true})},
    {"out", "FILE", kReached, "make: the reference that is written; its directory must exist", kReference,
     at<&S::reference, &Reference::out>()},
    {"against", "FILE", kReached,
     "check: the reference, from make or from MLPerf; exit code 1 where trainings are slower or faster, 2 where that is "
     "not decided",
     kReference, at<&S::reference, &Reference::against>()},
};
static_assert(train::has_rows<S>(kTargetRows, "accuracy", "against"));

}  // namespace

std::span<const Row> target_rows() { return kTargetRows; }

}  // namespace paceline::cli
