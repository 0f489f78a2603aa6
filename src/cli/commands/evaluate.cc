#include "train/evaluate_checkpoint.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "cli/commands/commands.h"
#include "cli/reports.h"
#include "cli/screen/screen.h"
#include "cluster/interrupt.h"
#include "cluster/make_backend.h"
#include "measure/events.h"
#include "report/build.h"
#include "train/evaluate.h"
#include "train/record/run_events.h"

namespace paceline::cli {
namespace {

/// Fails if an option on which the figures depend is unknown.
void require_known(const Settings& settings) {
  const auto checkpoint = settings.evaluate.checkpoint.string();
  for (const auto& [setting, example] : {std::pair{measure::Setting("model"), "--model resnet18-cifar"},
                                         std::pair{measure::Setting("data"), "--data cifar10:DIR"},
                                         std::pair{measure::Setting("precision"), "--precision fp32"}})
    if (!settings.is_given(setting))
      base::fail(ErrorKind::usage,
                 "evaluate {}: neither a record.json beside it nor the checkpoint says with which {} it was "
                 "trained; give it, as in {}",
                 checkpoint, setting.key(), example);
}

measure::Event start_of_evaluation(const Settings& settings) {
  const auto& options = settings.train;
  return measure::start_of("evaluate", settings.typed)
      .set("model", options.model)
      .set("data", options.data)
      .set("device", options.device)
      .set("precision", options.precision)
      .set("workers", options.workers);
}

measure::Event result_event(const measure::EvaluationRecord& result) {
  const double accuracy = static_cast<double>(result.correct) / static_cast<double>(result.samples);
  std::optional<double> top_5;
  if (result.classes.size() >= train::kLeastForTopFive)
    top_5 = static_cast<double>(result.correct_in_5) / static_cast<double>(result.samples);
  return measure::Event("evaluation")
      .set("update", result.updates)
      .set(result.part + "_loss", result.loss)
      .set(result.part + "_accuracy", accuracy)
      .set(result.part + "_top_5", top_5);
}

measure::Event end_of_evaluation(const measure::Record& record, double seconds) {
  auto end = train::end_event(record, seconds);
  if (record.evaluation && record.evaluation->part == "test")
    end.set("test_accuracy", static_cast<double>(record.evaluation->correct) /
                                 static_cast<double>(record.evaluation->samples));
  return end;
}

/// Evaluates, and writes events to the output directory, but never to those of the training.
measure::Record evaluate(const train::Options& options, const Settings& settings,
                         const train::Backend& backend, std::stop_token stop, Screen& screen) {
  const auto run = [&] {
    return train::evaluate_checkpoint(options, settings.evaluate, backend, stop, screen.progress());
  };
  if (std::filesystem::exists(options.out / "record.json")) return run();
  const auto began = base::Clock::now();
  RunLog log(options.out, backend.stalls);
  log.write(start_of_evaluation(settings));
  auto record = log.guard(run);
  if (record.evaluation && record.evaluation->samples > 0) log.write(result_event(*record.evaluation));
  log.write(end_of_evaluation(record, base::seconds_since(began)));
  return record;
}

}  // namespace

int evaluate_command(const Settings& settings) {
  require_known(settings);
  train::Options options = settings.train;
  if (options.out.empty()) options.out = new_directory("evaluate");
  const OutputDirectory directory(options.out);
  Screen screen(settings.json, Waits::never);
  for (const auto& note : settings.notes) screen.say(note);
  const cluster::Interrupt interrupt;
  const auto record =
      evaluate(options, settings, cluster::make_backend(options.device), interrupt.token(), screen);
  screen.clear_bar();
  if (record.status != "complete") {
    screen.say("{}: {}", record.status, record.reason);
    return interrupt.exit_code();
  }
  const auto path = options.out / "evaluation.json";
  measure::write_record(path, record);
  if (settings.json)
    std::printf("%s\n", measure::to_json(record).c_str());
  else
    say_report(report::build({&record, 1}, {.title = "", .command = settings.typed}), settings.tables,
               screen);
  screen.say("record: {}{}", path.string(),
             settings.json || settings.tables ? "" : "   (--tables: classes, confusions, mistakes)");
  return 0;
}

}  // namespace paceline::cli
