#include "base/program_path.h"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/stat.h>

#include <cstdlib>
#include <cstring>
#include <string_view>

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
      std::string id;
      for (std::size_t i = 0; i < note.n_descsz; ++i)
        id += fmt::format("{:02x}", static_cast<unsigned char>(begin[description + i]));
      return id;
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

}  // namespace

std::filesystem::path program_path(const std::filesystem::path& executable, const std::string& variable) {
  const bool is_loader = executable.filename().string().starts_with("ld-linux");
  return is_loader && !variable.empty() ? std::filesystem::path(variable) : executable;
}

std::filesystem::path program_path() {
  const char* const variable = std::getenv("PACELINE_PROGRAM");
  return program_path(std::filesystem::read_symlink(kItself), variable == nullptr ? "" : variable);
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

}  // namespace paceline::base
