#include "base/shared_library.h"

#include <dlfcn.h>
#include <elf.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string_view>
#include <system_error>

#include "base/file.h"

namespace paceline::base {
namespace {

constexpr const char* kItself = "/proc/self/exe";

/// The build id among the notes in `begin` .. `begin + bytes`, "" if there is none.
std::string id_in_notes(const char* begin, std::size_t bytes) {
  constexpr std::size_t kAlign = 4;
  const auto aligned = [](std::size_t size) { return (size + kAlign - 1) / kAlign * kAlign; };
  for (std::size_t at = 0; at + sizeof(ElfW(Nhdr)) <= bytes;) {
    ElfW(Nhdr) note{};
    std::memcpy(&note, begin + at, sizeof note);
    const std::size_t name = at + sizeof note, description = name + aligned(note.n_namesz);
    if (description + note.n_descsz > bytes) break;
    if (note.n_type == NT_GNU_BUILD_ID && std::string_view(begin + name, note.n_namesz).starts_with("GNU")) {
      const auto* id = reinterpret_cast<const unsigned char*>(begin + description);
      return fmt::format("{:02x}", fmt::join(id, id + note.n_descsz, ""));
    }
    at = description + aligned(note.n_descsz);
  }
  return "";
}

/// The program comes first in the loader's list, and its libraries follow.
int read_first(dl_phdr_info* info, std::size_t /*size*/, void* id) {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const auto* begin = reinterpret_cast<const char*>(info->dlpi_addr + segment.p_vaddr);
    auto& found = *static_cast<std::string*>(id);
    if (found.empty()) found = id_in_notes(begin, segment.p_memsz);
  }
  return 1;
}

namespace fs = std::filesystem;

void require_file(const Module& module, const fs::path& path) {
  if (is_there(path)) return;
  if (module.absent != nullptr)
    fail(module.kind, "{}: {} is not there: {}", module.library, path.string(), module.absent);
  fail(module.kind,
       "{}: {} is not there, because this program was built where {} was not installed; install {}, "
       "then: cmake --preset release && ./x build",
       module.library, path.string(), module.built_with, module.built_with);
}

/// The entries of `folder` whose names begin with `prefix`, in order of their names.
std::vector<fs::path> entries(const fs::path& folder, const std::string& prefix) {
  std::vector<fs::path> found;
  for (const auto& entry : entries_of(folder))
    if (entry.path().filename().string().starts_with(prefix)) found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

/// Adds the libraries of NVIDIA's packages in the Python installed at `prefix`.
void add_python(const fs::path& prefix, std::vector<fs::path>& folders) {
  for (const auto& python : entries(prefix / "lib", "python3"))
    for (const char* packages : {"site-packages", "dist-packages"})  // the second is Debian's name
      for (const auto& package : entries(python / packages / "nvidia", ""))
        if (is_there(package / "lib")) folders.push_back(package / "lib");
}

/// Adds the Python that `python3` would start, without running it.
void add_active_python(const std::string& path, std::vector<fs::path>& folders) {
  std::istringstream every(path);
  for (std::string folder; std::getline(every, folder, ':');) {
    const auto python = fs::path(folder) / "python3";
    if (!is_there(python)) continue;
    const auto prefix = python.parent_path().parent_path();
    if (is_there(prefix / "versions") && python.parent_path().filename() == "shims") {  // pyenv's script
      for (const auto& version : entries(prefix / "versions", "3")) add_python(version, folders);
    } else {
      add_python(prefix, folders);  // a virtual environment, whose python3 is a link
      std::error_code ignored;
      add_python(fs::canonical(python, ignored).parent_path().parent_path(), folders);
      add_python(prefix / "local", folders);  // Debian's pip
    }
    return;
  }
}

/// Whether the loader's error only says that the file does not exist.
bool only_absent(const std::string& error, const std::string& name) {
  return error.starts_with(name + ": cannot open shared object file");
}

std::string loaders_error() {
  const char* text = ::dlerror();
  return text == nullptr ? "no reason given" : text;
}

/// Opens a library in a namespace of its own, to ask for its version. cuDNN then loads its parts, which stay
/// loaded after it is closed; in the common namespace a newer cuDNN would get these older parts. Without a
/// handle, `error` says why.
SharedLibrary open_to_ask(const std::string& name, std::string& error) {
  void* opened = ::dlmopen(LM_ID_NEWLM, name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) {
    error = loaders_error();
    if (only_absent(error, name)) return {};
    // The loader has few such namespaces. If none is left, opens the library normally.
    opened = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (opened == nullptr) {
      error = loaders_error();
      return {};
    }
  }
  SharedLibrary library{opened, name};
  if (link_map* map = nullptr; ::dlinfo(opened, RTLD_DI_LINKMAP, &map) == 0) library.path = map->l_name;
  return library;
}

}  // namespace

std::filesystem::path program_path(const std::filesystem::path& executable, const std::string& variable) {
  const bool is_loader = executable.filename().string().starts_with("ld-linux");
  return is_loader && !variable.empty() ? std::filesystem::path(variable) : executable;
}

std::filesystem::path program_path() {
  const char* const variable = std::getenv("PACELINE_PROGRAM");
  std::error_code no_proc;
  auto executable = std::filesystem::read_symlink(kItself, no_proc);
  if (no_proc)  // the path by which it was started, which is relative for some shells
    executable = std::filesystem::absolute(reinterpret_cast<const char*>(::getauxval(AT_EXECFN)), no_proc);
  return program_path(executable, variable == nullptr ? "" : variable);
}

std::string build_id() {
  std::string id;
  ::dl_iterate_phdr(read_first, &id);
  if (!id.empty()) return id;
  struct stat status {};
  if (::stat(kItself, &status) != 0) return "unknown program";
  return fmt::format("program of {} bytes, {}.{}", status.st_size, status.st_mtim.tv_sec,
                     status.st_mtim.tv_nsec);
}

std::vector<std::filesystem::path> module_folders(const std::filesystem::path& program) {
  const auto beside = program.parent_path(), above = beside.parent_path();
  std::vector<fs::path> folders{beside};
  if (beside.filename() == "bin") folders.push_back(above / "lib/paceline");
  const bool is_of_build = beside.filename() == "tests" || beside.filename() == "bench";
  if (is_of_build && program.filename() != "paceline") folders.push_back(above);
  return folders;
}

std::filesystem::path module_path(const Module& module) {
  const auto folders = module_folders(program_path());
  for (const auto& folder : folders)
    if (is_there(folder / module.file)) return folder / module.file;
  return folders.front() / module.file;
}

void require_module(const Module& module) { require_file(module, module_path(module)); }

void* open_module(const Module& module, const std::filesystem::path& folder) {
  const auto path = folder.empty() ? module_path(module) : folder / module.file;
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

EnvironmentLookup process_environment() {
  return [](const char* name) -> const char* { return std::getenv(name); };
}

void* SharedLibrary::symbol(const char* name) const { return ::dlsym(handle, name); }

std::vector<fs::path> library_folders(const EnvironmentLookup& environment) {
  const auto value = [&](const char* name) {
    const char* found = environment(name);
    return std::string(found == nullptr ? "" : found);
  };
  std::vector<fs::path> folders;
  if (const auto active = value("VIRTUAL_ENV"); !active.empty()) add_python(active, folders);
  add_active_python(value("PATH"), folders);
  if (const auto home = value("HOME"); !home.empty()) add_python(fs::path(home) / ".local", folders);
  if (const fs::path conda = value("CONDA_PREFIX"); !conda.empty()) {
    add_python(conda, folders);
    folders.push_back(conda / "lib");
  }
  for (const fs::path toolkit : {value("CUDA_HOME"), value("CUDA_PATH"), std::string("/usr/local/cuda")})
    if (!toolkit.empty())
      for (const char* lib : {"lib64", "lib"}) folders.push_back(toolkit / lib);
  std::vector<fs::path> result;
  std::vector<fs::path> seen;
  for (const auto& folder : folders) {
    std::error_code error;
    const auto real = fs::canonical(folder, error);
    if (error || std::find(seen.begin(), seen.end(), real) != seen.end()) continue;
    seen.push_back(real);
    result.push_back(folder);
  }
  return result;
}

SharedLibrary find_library(const LibraryWanted& wanted, const std::vector<fs::path>& folders,
                           const Refusal& refusal) {
  std::vector<std::string> names{wanted.file};  // without a folder: the loader searches
  for (const auto& folder : folders)
    if (is_there(folder / wanted.file)) names.push_back((folder / wanted.file).string());
  std::vector<std::string> refused;
  for (const auto& name : names) {
    std::string error;
    SharedLibrary library = open_to_ask(name, error);
    if (library.handle == nullptr) {
      if (!only_absent(error, name)) refused.push_back(error);
      continue;
    }
    const auto why = refusal(library);
    ::dlclose(library.handle);
    if (why.empty()) library.handle = ::dlopen(library.path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (why.empty() && library.handle != nullptr) return library;
    refused.push_back(why.empty() ? loaders_error() : fmt::format("{}: {}", library.path, why));
  }
  if (!refused.empty())
    fail(wanted.kind, "{}: needs {}, but what was found cannot be used ({}); install it, for example: {}",
         wanted.asked, wanted.product, fmt::join(refused, "; "), wanted.install);
  fail(wanted.kind,
       "{}: needs {}, but {} is neither where the loader looks (LD_LIBRARY_PATH, its cache) nor in a folder "
       "of the active Python environment, of conda or of the CUDA toolkit; install it, for example: {}",
       wanted.asked, wanted.product, wanted.file, wanted.install);
}

}  // namespace paceline::base
