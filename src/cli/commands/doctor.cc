#include "cli/doctor.h"

#include <iostream>

#include "cli/commands/commands.h"
#include "cli/session.h"

namespace paceline::cli {

int doctor_command(const Settings& settings) {
  DoctorOptions options = settings.doctor;
  options.device = settings.train.device;
  options.precision = settings.train.precision;
  options.threads = settings.train.threads;
  if (settings.train.local_batch > 0) options.local_batch = settings.train.local_batch;
  if (settings.session != nullptr && !settings.session->is_first()) return 0;  // the first one speaks for all
  doctor(options, settings.session, std::cout);
  std::cout.flush();
  return 0;
}

}  // namespace paceline::cli
