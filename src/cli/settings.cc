#include "cli/settings.h"

namespace paceline::cli {

Settings defaults(Command command) {
  Settings settings;
  settings.command = command;
  if (command == kComm) settings.train.workers = 2;  // one alone has nobody to talk to
  // The first steps of a cell touch memory for the first time and would be timed with it.
  if (command & (kSweep | kScale | kStudy)) settings.train.warmup_steps = 2;
  return settings;
}

}  // namespace paceline::cli
