#include "comm/module.h"

#include <dlfcn.h>

#include <system_error>

#include "base/error.h"

namespace paceline::comm {

std::filesystem::path module_path(const Module& module) {
  std::error_code ignored;
  const auto beside = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  const auto installed = beside.parent_path() / "lib/paceline" / module.file;
  return std::filesystem::exists(installed) ? installed : beside / module.file;
}

void* open_module(const Module& module, const std::filesystem::path& folder) {
  const auto path = folder / module.file;
  if (!std::filesystem::exists(path))
    base::fail(base::ErrorKind::comm,
               "{}: {} is not there, because this program was built where {} was not installed; install {}, "
               "then: cmake --preset release && ./x build",
               module.library, path.string(), module.library, module.built_with);
  // Open MPI opens plug-ins of its own, which look for its symbols globally.
  void* const opened = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (opened == nullptr)
    base::fail(base::ErrorKind::comm, "{}: {} cannot be opened: {}; install {} (Debian: apt-get install {})",
               module.library, path.string(), ::dlerror(), module.runs_with, module.runs_with);
  void* const entry = ::dlsym(opened, module.entry);
  if (entry == nullptr)
    base::fail(base::ErrorKind::comm, "{}: {} is of another version of this program; build both anew",
               module.library, path.string());
  return entry;
}

}  // namespace paceline::comm
