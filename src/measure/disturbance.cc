#include "measure/disturbance.h"

#include <fmt/format.h>

namespace paceline::measure {
namespace {

constexpr double kBusy = 0.1;  ///< of the cores, kept busy by others: above it times are somebody else's

}  // namespace

bool is_disturbed(const Record& record) {
  return record.window.others_cores.value_or(0) > kBusy * record.environment.cores;
}

std::string disturbance(const Record& record) {
  // A process that was bound to some cores knows those alone, and others may have used more.
  const double others = *record.window.others_cores;
  const int cores = record.environment.cores;
  return others <= cores ? fmt::format("other programs kept {:.2f} of {} cores busy", others, cores)
                         : fmt::format("other programs kept {:.2f} cores busy", others);
}

}  // namespace paceline::measure
