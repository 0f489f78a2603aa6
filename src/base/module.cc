#include "base/module.h"

#include <dlfcn.h>

#include <system_error>

#include "base/program_path.h"

namespace paceline::base {

std::filesystem::path module_path(const Module& module) {
  std::error_code ignored;
  const auto beside = program_path().parent_path();
  const auto above = beside.parent_path();
  for (const auto& folder : {above / "lib/paceline", beside, above})
    if (std::filesystem::exists(folder / module.file, ignored)) return folder / module.file;
  return beside / module.file;
}

namespace {

void require_file(const Module& module, const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) return;
  if (module.absent != nullptr)
    fail(module.kind, "{}: {} is not there: {}", module.library, path.string(), module.absent);
  fail(module.kind,
       "{}: {} is not there, because this program was built where {} was not installed; install {}, "
       "then: cmake --preset release && ./x build",
       module.library, path.string(), module.built_with, module.built_with);
}

}  // namespace

void require_module(const Module& module) { require_file(module, module_path(module)); }

void* open_module(const Module& module, const std::filesystem::path& folder) {
  const auto path = folder / module.file;
  require_file(module, path);
  void* const opened = ::dlopen(path.c_str(), RTLD_NOW | (module.global ? RTLD_GLOBAL : RTLD_LOCAL));
  if (opened == nullptr)
    fail(module.kind, "{}: {} cannot be opened: {}; {}", module.library, path.string(), ::dlerror(),
         module.remedy);
  void* const entry = ::dlsym(opened, module.entry);
  if (entry == nullptr)
    fail(module.kind, "{}: {} is of another version of this program; build both again", module.library,
         path.string());
  return entry;
}

}  // namespace paceline::base
