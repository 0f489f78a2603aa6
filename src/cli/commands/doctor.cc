#include "cli/doctor.h"

#include <iostream>

#include "cli/commands/commands.h"

namespace paceline::cli {

int doctor_command(const Settings& settings) {
  DoctorOptions options = settings.doctor;
  options.device = settings.train.device;
  options.precision = settings.train.precision;
  options.threads = settings.train.threads;
  if (settings.train.local_batch > 0) options.local_batch = settings.train.local_batch;
  doctor(options, std::cout);
  std::cout.flush();
  return 0;
}

}  // namespace paceline::cli
