#include "report/answers/wording.h"

#include <fmt/format.h>

#include <vector>

#include "analysis/steps/by_worker.h"
#include "report/text.h"

namespace paceline::report {
namespace {

using analysis::Remedy;
using analysis::RemedyKind;

std::string like(const analysis::EfficiencyLoss& loss, const std::vector<std::string>& replaced_options,
                 const std::string& options) {
  std::string command = command_like(loss.cell->record(), "scale", "");
  for (const auto& option : replaced_options) command = without_option(command, option);
  return command + " " + options;
}

/// Options that measure the two cells again, at `times` the batch: "--mode weak --workers 1,4 --batches 32".
std::string cells_of(const analysis::EfficiencyLoss& loss, int workers, int times = 1) {
  const auto batch = loss.mode == analysis::Mode::weak ? loss.cell->local_batch : loss.cell->global_batch;
  return fmt::format("--mode {} --workers {},{} --batches {} --repeats 3", analysis::name(loss.mode),
                     loss.baseline->workers, workers, times * batch);
}

/// The command that runs the cells on two hosts, for remedies that one host cannot offer.
std::string elsewhere(const analysis::EfficiencyLoss& loss) {
  const std::string command =
      like(loss, {}, cells_of(loss, loss.cell->workers)).substr(std::string("paceline ").size());
  return fmt::format("paceline launch --hosts HOST1:{},HOST2:{} -- {}", (loss.cell->workers + 1) / 2,
                     loss.cell->workers / 2, command);
}

}  // namespace

std::string name_of(const Remedy& remedy, const analysis::Cell& cell) {
  switch (remedy.kind) {
    case RemedyKind::larger_batch:
      return "twice the batch";
    case RemedyKind::own_cores:
      return cell.threads_per_worker > 1 ? "fewer threads a worker" : "workers farther apart";
    case RemedyKind::even_ranks:
      if (const auto workers = analysis::by_worker(cell); workers && analysis::takes_turns(*workers))
        return "no worker that is late in a run";
      return cell.workers > 2 ? "the slowest worker taken out" : "workers that are alike";
    case RemedyKind::quiet_host:
      return "a quieter host";
    case RemedyKind::bucket_size:
      return fmt::format("buckets of {} MB", number(remedy.value));
    case RemedyKind::bf16_gradients:
      return "gradients as bf16";
    case RemedyKind::faster_link:
      return "twice the bandwidth";
    case RemedyKind::loader_threads:
      return fmt::format("{} a worker", counted(remedy.value, "loader thread"));
  }
  return "";
}

std::string text_about_gain(const Remedy& remedy) {
  return fmt::format("saves {}{}", remedy.is_bound ? "at most " : "", about(remedy.alone));
}

std::string command_of(const Remedy& remedy, const analysis::EfficiencyLoss& loss) {
  const int workers = loss.cell->workers;
  const std::string cells = cells_of(loss, workers);
  switch (remedy.kind) {
    case RemedyKind::larger_batch:
      return like(loss, {}, cells_of(loss, workers, 2));
    case RemedyKind::own_cores:
      if (loss.cell->threads_per_worker == 1) return elsewhere(loss);
      return like(loss, {"--threads"},
                  fmt::format("--threads {} {}", loss.cell->threads_per_worker - 1, cells));
    case RemedyKind::even_ranks:
      if (workers < 3) return elsewhere(loss);
      return like(loss, {}, cells_of(loss, workers - 1));
    case RemedyKind::quiet_host:
      return like(loss, {}, cells);
    case RemedyKind::bucket_size:
      return like(loss, {"--bucket-mb", "--bucket"},
                  fmt::format("--bucket-mb {:.3g} {}", remedy.value, cells));
    case RemedyKind::bf16_gradients: {
      const std::string command =
          without_option(command_like(loss.cell->record(), "train", ""), "--gradients-as");
      return fmt::format("paceline launch -n {} -- {} --gradients-as bf16 --local-batch {} --window-steps 50",
                         workers, command.substr(std::string("paceline ").size()), loss.cell->local_batch);
    }
    case RemedyKind::faster_link:
      return elsewhere(loss);
    case RemedyKind::loader_threads:
      return like(loss, {"--loader-threads"}, fmt::format("--loader-threads {} {}", remedy.value, cells));
  }
  return "";
}

}  // namespace paceline::report
