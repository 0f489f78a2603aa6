#include "train/evaluate_checkpoint.h"

#include <fmt/format.h>

#include <cstdio>

#include "base/error.h"
#include "cli/backend.h"
#include "cli/commands/cells.h"
#include "cli/commands/commands.h"
#include "cli/interrupt.h"
#include "cli/new_directory.h"
#include "cli/reports.h"
#include "cli/screen.h"
#include "report/build.h"

namespace paceline::cli {
namespace {

/// Nothing of what the figures depend on is guessed.
void require_known(const Settings& settings) {
  const auto checkpoint = settings.evaluate.checkpoint.string();
  for (const auto& [setting, example] : {std::pair{measure::Setting("model"), "--model resnet18-cifar"},
                                         std::pair{measure::Setting("data"), "--data cifar10:DIR"},
                                         std::pair{measure::Setting("precision"), "--precision fp32"}})
    if (!settings.is_given(setting))
      base::fail(base::ErrorKind::usage,
                 "evaluate {}: neither a record.json beside it nor the checkpoint says with which {} it was "
                 "trained; give it, as in {}",
                 checkpoint, setting.key(), example);
}

}  // namespace

int evaluate_command(const Settings& settings) {
  require_known(settings);
  train::Options options = settings.train;
  if (options.out.empty()) options.out = new_directory("evaluate");
  const OutputDirectory directory(options.out);
  Screen screen(settings.json);
  for (const auto& note : settings.notes) screen.explain(note);
  const Interrupt interrupt;
  const auto record = train::evaluate_checkpoint(options, settings.evaluate, backend_alone(settings),
                                                 interrupt.token(), screen.progress());
  screen.clear_bar();
  if (record.status != "complete") {
    screen.explain(fmt::format("{}: {}", record.status, record.reason));
    return interrupt.exit_code();
  }
  const auto path = options.out / "evaluation.json";
  measure::write_record(path, record);
  if (settings.json)
    std::printf("%s\n", measure::to_json(record).c_str());
  else
    screen.say(report::to_terminal(report::build({&record, 1}, {.title = "", .command = settings.typed}),
                                   screen.width(), screen.colour()));
  screen.explain(fmt::format("record: {}", path.string()));
  return 0;
}

}  // namespace paceline::cli
