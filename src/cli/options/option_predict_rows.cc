/// The rows of options about what is predicted, and how a prediction is scored.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "cli/options/option_rows.h"

namespace paceline::cli {
namespace {

constexpr const char* kPredicted = "What is predicted";
using Predict = S::Predict;

/// "1:4096", or a list.
void choose_predicted_workers(Settings& settings, std::string_view text) {
  constexpr std::int64_t kMost = 1 << 20;
  auto& workers = settings.predict.workers;
  const auto colon = text.find(':');
  if (colon == std::string_view::npos) {
    workers = whole_numbers(text, 1, kMost);
    std::ranges::sort(workers);
    workers.erase(std::ranges::unique(workers).begin(), workers.end());
    return;
  }
  const auto low = whole_number_in(text, "first number", text.substr(0, colon), 1, kMost);
  const auto high = whole_number_in(text, "last number", text.substr(colon + 1), 1, kMost);
  if (low > high)
    base::fail(ErrorKind::usage, "must rise from the first number to the last, got '{}'; write {}:{}", text,
               high, low);
  workers = analysis::worker_grid(low, high);
}

constexpr Row kPredictRows[] = {
    {"workers", "FROM:TO|LIST", kPredicted,
     "numbers of workers, such as 1:4096 (about thirty in it) or 8,16,64", kPredict | kTarget,
     Field<S>([](S& s, Text t) { choose_predicted_workers(s, t); },
              [](const S& s) { return fmt::format("{}", fmt::join(s.predict.workers, ",")); })},
    {"cluster", "FILE|PRESET", kPredicted,
     "the cluster: a file (docs/prediction.md), or one that is known, such as dgx-a100 or eth-10 (default: as "
     "measured)",
     kPredict | kTarget, at<&S::predict, &Predict::cluster>()},
    {"link", "FILE", kPredicted,
     "timed all-reduces: a record of comm, or the output of nccl-tests; they take the place of formulas where "
     "they were timed",
     kPredict | kTarget, at<&S::predict, &Predict::link>()},
    {"scaling", "MODE", kPredicted, "weak: each worker keeps its batch; strong: the global batch stays",
     kPredict, at<&S::predict, &Predict::is_strong>({.words = "weak|strong"})},
    {"local-batch", "B", kPredicted, "batch of each worker, for weak scaling (default: of the records)",
     kPredict, at<&S::predict, &Predict::local_batch>({.least = 1, .most = kLargestBatch}),
     rival("global-batch")},
    {"global-batch", "B", kPredicted,
     "kept for all numbers of workers (--scaling strong); target: the only one", kPredict | kTarget,
     at<&S::predict, &Predict::global_batch>({.least = 1, .most = kLargestBatch}), rival("local-batch")},
    {"what-if", "LIST", kPredicted,
     "factors that are tried: bandwidth=2x,latency=0.5x,loader=2x,compute=1.5x; and batch=64, another local batch",
     kPredict,
     Field<S>([](S& s, Text t) { s.predict.what_if = analysis::parse_what_if(t); },
              [](const S&) { return std::string(); })},
    {"efficiency", "E", kPredicted, "what the knee keeps: the most workers with at least this efficiency",
     kPredict, at<&S::predict, &Predict::efficiency>({.least = 0, .most = 1, .open_below = true})},
    {"at-most", "N", kPredicted,
     "workers that you can have for the next measurement (default: four times the most measured)", kPredict,
     at<&S::predict, &Predict::at_most>({.least = 1, .most = 1 << 20})},
    {"fidelity", "HOW", kPredicted,
     "closed: formulas; workers: beside them every worker of 200 steps is drawn; messages: reductions of up to 256 "
     "workers are simulated message by message",
     kPredict, at<&S::predict, &Predict::fidelity>({.words = "closed|workers|messages"})},
    {"out", "FILE", kPredicted,
     "the prediction as JSON, to be scored later; with --score the file with its scores; its directory must exist",
     kPredict, at<&S::predict, &Predict::out>()},
    {"score", "FILE", kPredicted,
     "compare what was measured with this prediction; exit code 1 where a value lies outside its interval",
     kPredict, at<&S::predict, &Predict::score>()},
    {"calibrate-by", "FILE", kPredicted,
     "predictions with scores; from 20 of one kind on they set the width of intervals of that kind; may be given "
     "several times",
     kPredict,
     Field<S>(
         [](S& s, Text t) {
           const auto files = lines_of(t);
           s.predict.calibrate_by.assign(files.begin(), files.end());
         },
         [](const S&) { return ""; }),
     kList},
};
static_assert(train::has_rows<S>(kPredictRows, "cluster", "calibrate-by"));

}  // namespace

std::span<const Row> predict_rows() { return kPredictRows; }

}  // namespace paceline::cli
