#include "comm/mpi/load.h"

#include "comm/mpi/module.h"

namespace paceline::comm::mpi {

std::unique_ptr<Wire> open_wire(const std::filesystem::path& folder) {
  const auto entry = reinterpret_cast<decltype(&paceline_open_mpi)>(base::open_module(kModule, folder));
  return std::unique_ptr<Wire>(entry());
}

std::unique_ptr<Wire> open_wire() { return open_wire(base::module_path(kModule).parent_path()); }

}  // namespace paceline::comm::mpi
