#include "cli/options/settings.h"

namespace paceline::cli {

Settings defaults(Command command) {
  Settings settings;
  settings.command = command;
  if (command == kComm) settings.train.workers = 2;  // a single worker has no one to communicate with
  // The first steps of a cell touch memory for the first time, which should not be timed.
  if (command & (kSweep | kScale | kStudy)) settings.train.warmup_steps = 2;
  return settings;
}

}  // namespace paceline::cli
