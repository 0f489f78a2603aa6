#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "cli/commands/assign_processes.h"
#include "cli/commands/commands.h"
#include "cli/plan.h"
#include "cli/reports.h"
#include "cli/screen/screen.h"
#include "cluster/child.h"
#include "cluster/interrupt.h"
#include "cluster/log.h"
#include "cluster/make_backend.h"
#include "cluster/session.h"
#include "measure/record.h"
#include "measure/tensorboard.h"
#include "report/build.h"
#include "report/sections/sections.h"
#include "train/checkpoint/checkpoint.h"
#include "train/run.h"

namespace paceline::cli {
namespace {

/// The ledger of rank 0 in one line: where the wall time went, the largest part first.
std::string ledger_line(const measure::RankRecord& rank) {
  std::vector<std::pair<double, std::size_t>> parts;
  for (std::size_t phase = 0; phase < measure::kPhases; ++phase)
    if (rank.wall_s > 0 && rank.phases[phase] >= 0.005 * rank.wall_s)
      parts.push_back({rank.phases[phase], phase});
  std::sort(parts.rbegin(), parts.rend());
  std::string text;
  for (const auto& [seconds, phase] : parts)
    text += fmt::format("{}{} {:.1f} %", text.empty() ? "" : ", ",
                        measure::name(static_cast<measure::Phase>(phase)), 100 * seconds / rank.wall_s);
  return fmt::format("where the {:.1f} s went (rank 0): {}", rank.wall_s, text);
}

std::function<bool()> silence(const cluster::Session* session) {
  if (session == nullptr) return {};
  return [session] { return session->silent(); };
}

/// The processes that have workers; empty: all. With --placement there may be fewer workers than processes;
/// without it that is most likely a mistake, which resolve() refuses.
std::vector<int> choose_processes(const Settings& settings, const train::Options& options) {
  cluster::Session* const session = settings.session;
  if (!settings.is_given("placement")) return {};
  if (settings.study.placements.size() > 1)
    base::fail(ErrorKind::usage, "--placement both: a training runs once; give packed or spread");
  if (session == nullptr || options.workers >= session->place().processes) return {};
  auto processes = processes_for(options.workers, options.placement, session->members());
  session->processes().regroup(processes);
  return processes;
}

train::Backend backend_of(const train::Options& options, cluster::Session* session,
                          const std::vector<int>& processes) {
  auto backend = cluster::make_backend(
      options.device, session, cluster::emulation_of(options),
      options.gradients_as_bf16 ? comm::WireFormat::bf16 : comm::WireFormat::fp32, processes);
  if (!processes.empty()) backend.place.placement = placement_text(options, session->members());
  return backend;
}

/// What is left of the training, and how it goes on: the newest checkpoint, and the command that resumes it.
std::vector<std::string> lines_on_checkpoints(const train::Options& options, const measure::Record& record,
                                              const std::string& typed) {
  const auto checkpoints = train::checkpoints_in(options.out);
  const bool is_over = record.status == "complete";
  if (checkpoints.empty())
    return is_over ? std::vector<std::string>()
                   : std::vector<std::string>{"no checkpoint was written: the training begins again"};
  std::vector<std::string> lines{
      fmt::format("checkpoint: {}{}", checkpoints.front().string(),
                  is_over ? fmt::format("   (paceline evaluate {} looks at its mistakes)",
                                        base::shell_word(options.out.string()))
                          : "")};
  if (is_over) return lines;
  const bool names_resume = typed.find(" --resume") != std::string::npos;
  lines.push_back(names_resume && options.resume_auto
                      ? "go on: the same command again"
                      : fmt::format("go on: {} --resume {}", names_resume ? "the same command, with" : typed,
                                    base::shell_word(options.out.string())));
  return lines;
}

/// Runs a process other than the first: it works, while the first prints and writes files. A process without
/// a worker only waits for the end.
int follow_session(const train::Options& options, cluster::Session& session,
                   const std::vector<int>& processes) {
  const cluster::Interrupt interrupt(silence(&session));
  if (!processes.empty() && !std::ranges::binary_search(processes, session.place().process)) {
    // While the signal handler is installed, so that a signal to all processes does not end this one before
    // the others.
    return session.leave(interrupt.exit_code());
  }
  const auto record =
      train::run(options, backend_of(options, &session, processes), interrupt.token(), train::Progress{});
  return record.status == "interrupted" ? interrupt.exit_code() : 0;
}

}  // namespace

int train_command(const Settings& settings) {
  train::Options options = settings.train;
  options.lost = cluster::read_lost(std::getenv(cluster::kLost));
  options.note = settings.recipe;
  cluster::Session* const session = settings.session;
  if (session != nullptr && !settings.is_given("workers")) options.workers = session->place().processes;
  if (settings.plan && !settings.is_given("workers")) options.workers = settings.planned_processes;
  const auto emulation = cluster::emulation_of(options);
  if (emulation.straggler && emulation.straggler->rank >= options.workers)
    base::fail(ErrorKind::usage, "--emulate-straggler {}: there are {} workers, ranks 0 to {}",
               options.emulate_straggler, options.workers, options.workers - 1);
  if (options.resume_auto && options.out.empty())
    base::fail(ErrorKind::usage,
               "--resume auto continues what is in the run's own directory; name it: --out DIR");
  const auto processes = choose_processes(settings, options);
  if (session != nullptr && !session->is_first()) return follow_session(options, *session, processes);
  if (options.gradients_as_bf16 && session == nullptr)
    base::fail(ErrorKind::usage,
               "--gradients-as bf16 applies to messages between processes, but this run is one process, "
               "whose workers share memory; start several (docs/processes.md), or leave it out");
  if (settings.plan) {
    const auto directory =
        options.out.empty() ? std::filesystem::path("paceline-out") / "train-..." : options.out;
    return show_plan(settings, {{.id = "train", .kind = "train", .options = options}},
                     plan_backend(settings, emulation), directory);
  }
  if (options.out.empty()) options.out = new_directory("train");
  OutputDirectory directory(options.out);
  Screen screen(settings.json, Waits::never);
  if (!settings.recipe.empty()) screen.say(settings.recipe);
  for (const auto& note : settings.notes) screen.say(note);

  const cluster::Interrupt interrupt(silence(session));
  const auto backend = backend_of(options, session, processes);
  RunLog log(options.out, backend.stalls, [&] { return directory.follow(); });
  auto progress = screen.progress();
  const auto shown = progress.event;
  std::optional<measure::TensorBoardFile> board;
  if (settings.tensorboard) board.emplace(options.out / "tensorboard", cluster::log_line);
  const std::string watch = watch_line(options.out);
  progress.event = [&](const measure::Event& event) {
    log.write(event);
    shown(event);
    if (event.name() == "start" && !watch.empty()) screen.say(watch);  // not if the run is refused
    if (board) board->take(event);
  };
  const measure::Record record =
      log.guard([&] { return train::run(options, backend, interrupt.token(), progress); });
  screen.clear_bar();
  const auto path = options.out / "record.json";

  if (!record.ranks.empty() && record.window.wall_s > 0) {
    screen.say(ledger_line(record.ranks.front()));
    if (const auto warning = report::loader_warning(report::conclude({&record, 1})))
      screen.say(warning->text);
  }
  if (settings.json) std::printf("%s\n", measure::to_json(record).c_str());
  if (record.status != "complete") screen.say("{}: {}", record.status, record.reason);
  screen.say("record: {}   (paceline report {} explains it)", path.string(),
             base::shell_word(options.out.string()));
  for (const auto& line : lines_on_checkpoints(options, record, settings.typed)) screen.say(line);
  const int expected =
      settings.report.bounds.empty()
          ? 0
          : say_expectations(report::build({&record, 1}, {.bounds = settings.report.bounds}), screen);
  return record.status == "interrupted" ? interrupt.exit_code() : expected;
}

}  // namespace paceline::cli
