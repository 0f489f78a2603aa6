#include "comm/mpi/load.h"

#include <dlfcn.h>

#include <system_error>

#include "base/error.h"
#include "comm/mpi/module.h"

namespace paceline::comm::mpi {
namespace {

std::filesystem::path folder_of_program() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
}

}  // namespace

std::unique_ptr<Wire> open_wire(const std::filesystem::path& folder) {
  const auto path = folder / kModuleFile;
  if (!std::filesystem::exists(path))
    base::fail(base::ErrorKind::comm,
               "mpi: {} is not there, because this program was built where MPI was not installed; install "
               "libopenmpi-dev and openmpi-bin, then: cmake --preset release && ./x build",
               path.string());
  // Open MPI opens plug-ins of its own, which look for its symbols globally.
  void* module = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (module == nullptr)
    base::fail(base::ErrorKind::comm,
               "mpi: {} cannot be opened: {}; install openmpi-bin (Debian: apt-get install openmpi-bin)",
               path.string(), ::dlerror());
  const auto entry = reinterpret_cast<decltype(&paceline_open_mpi)>(::dlsym(module, kModuleEntry));
  if (entry == nullptr)
    base::fail(base::ErrorKind::comm, "mpi: {} is of another version of this program; build both anew",
               path.string());
  return std::unique_ptr<Wire>(entry());  // the module stays open: its code runs until the process ends
}

std::filesystem::path module_path() {
  const auto beside = folder_of_program();
  const auto installed = beside.parent_path() / "lib/paceline" / kModuleFile;
  return std::filesystem::exists(installed) ? installed : beside / kModuleFile;
}

std::unique_ptr<Wire> open_wire() { return open_wire(module_path().parent_path()); }

}  // namespace paceline::comm::mpi
