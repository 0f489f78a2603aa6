#include "cli/doctor.h"

#include <sstream>
#include <utility>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/screen/screen.h"
#include "cluster/gpu_table.h"
#include "cluster/session.h"

namespace paceline::cli {

int doctor_command(const Settings& settings) {
  DoctorOptions options = settings.doctor;
  options.device = settings.train.device;
  options.precision = settings.train.precision;
  options.threads = settings.train.threads;
  options.input = settings.model.input;
  options.classes = settings.model.classes;
  if (settings.train.local_batch > 0) options.local_batch = settings.train.local_batch;
  const auto ranks = cluster::ranks_on_gpus(settings.session);
  if (settings.session != nullptr && !settings.session->is_first()) return 0;  // the first prints for all
  std::ostringstream text;
  doctor(options, settings.session, ranks, text);
  print(text.str());
  return 0;
}

}  // namespace paceline::cli
