#include "cli/doctor.h"

#include <iostream>

#include "cli/commands/commands.h"

namespace paceline::cli {

int doctor_command(const Settings&) {
  doctor({}, std::cout);
  return 0;
}

}  // namespace paceline::cli
