#include "data/archive.h"

#include "base/error.h"
#include "base/shared_library.h"

namespace paceline::data {
namespace {

constexpr base::Module kArchives{.kind = base::ErrorKind::data,
                                 .library = "an archive",
                                 .file = "paceline_archive.so",
                                 .entry = "paceline_archives",
                                 .built_with = "libarchive-dev",
                                 .remedy = "install libarchive (Debian: apt-get install libarchive13)",
                                 .absent =
                                     "every build and package has it, so the program was copied without "
                                     "it; copy it to the same folder"};

PacelineArchives library() {
  static const auto kOpen = reinterpret_cast<decltype(&paceline_archives)>(base::open_module(kArchives));
  return kOpen();
}

}  // namespace

bool ArchiveReader::read_all(std::span<std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const auto got = read(bytes);
    if (got <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
  std::uint8_t beyond = 0;
  return read({&beyond, 1}) == 0;
}

std::unique_ptr<ArchiveReader> read_archive(ArchiveForm form, std::span<const std::uint8_t> bytes) {
  return std::unique_ptr<ArchiveReader>(library().read(form, bytes));
}

std::unique_ptr<ArchiveWriter> write_tar(int descriptor) {
  return std::unique_ptr<ArchiveWriter>(library().write_tar(descriptor));
}

}  // namespace paceline::data
