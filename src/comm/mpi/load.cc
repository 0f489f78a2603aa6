#include "comm/mpi/load.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <string>

#include "base/error.h"

namespace paceline::comm::mpi {
namespace {

/// Sets variables that MPI reads when it starts; values that the user has set stay.
void choose_interface(const std::string& name) {
  if (name.empty()) return;
  for (const char* variable : {"OMPI_MCA_btl_tcp_if_include", "OMPI_MCA_oob_tcp_if_include", "FI_TCP_IFACE"})
    ::setenv(variable, name.c_str(), 0);
}

/// Opens the installed library of MPICH's family, since its module names none.
void open_mpich() {
  std::string why;
  for (const char* name : {"libmpich.so.12", "libmpi.so.12"}) {  // Debian's name, and the usual name
    if (::dlopen(name, RTLD_NOW | RTLD_GLOBAL) != nullptr) return;
    why += fmt::format("{}{}", why.empty() ? "" : "; ", ::dlerror());
  }
  base::fail(
      base::ErrorKind::comm,
      "mpich: mpiexec started several processes (PMI_SIZE), and no library of MPICH's family can be opened: {}; {}",
      why, kMpichModule.remedy);
}

}  // namespace

std::unique_ptr<Wire> open_wire(const Launch& launch, const std::filesystem::path& folder) {
  choose_interface(launch.interface);
  if (launch.is_mpich) open_mpich();
  const auto& module = launch.is_mpich ? kMpichModule : kModule;  // of the launcher's MPI
  const auto entry = reinterpret_cast<decltype(&paceline_open_mpi)>(base::open_module(module, folder));
  return std::unique_ptr<Wire>(entry());
}

}  // namespace paceline::comm::mpi
