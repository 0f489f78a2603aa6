#pragma once

/// Reads archives (tar, zip, gzip) member by member, and writes tar, by libarchive. That loads the libraries
/// of XML and Unicode, so it is linked to a module, paceline_archive.so (archive_module.cc), and only a
/// process that meets an archive opens it.

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace paceline::data {

struct ArchiveMember {
  std::string path;                          ///< as the archive has it; "": none that can be read
  bool is_file = false;                      ///< no folder, link or device
  std::int64_t bytes = -1;                   ///< the length of its contents; -1: the archive does not say it
  std::uint64_t begin = 0;                   ///< of a tar: where its contents begin
  std::string hard_link = {}, symlink = {};  ///< the path that a link has
  bool is_doubtful = false;                  ///< such as two lengths that are not the same
  bool is_sparse = false;                    ///< of a tar: holes are left out of its contents
};

enum class ArchiveForm {
  tar,
  tar_gzip,
  gzip,  ///< one member without a path
  zip,   ///< by the directory at the end of the file, which one that was cut short lacks
};

class ArchiveReader {
 public:
  enum class Next { member, end, failed };
  virtual ~ArchiveReader() = default;
  /// Goes on to the next member, or the first.
  [[nodiscard]] virtual Next next(ArchiveMember& member) = 0;
  /// The next bytes of the member's contents; their number is 0 at their end, and -1 if they cannot be read.
  /// Holes are zeros. A checksum is compared at the end.
  [[nodiscard]] virtual std::int64_t read(std::span<std::uint8_t> bytes) = 0;
  /// Why a call failed.
  [[nodiscard]] virtual std::string reason() const = 0;

  /// The whole contents of the member into `bytes`; false: they are shorter or longer, or cannot be read.
  [[nodiscard]] bool read_all(std::span<std::uint8_t> bytes);
};

class ArchiveWriter {
 public:
  virtual ~ArchiveWriter() = default;
  /// Both: false if it cannot be written. A member has neither owner nor time, so that the same contents give
  /// the same archive.
  [[nodiscard]] virtual bool add(const std::string& path, std::span<const std::uint8_t> bytes) = 0;
  [[nodiscard]] virtual bool finish() = 0;
  /// Why a call failed.
  [[nodiscard]] virtual std::string reason() const = 0;
};

/// `bytes`, the whole archive, must outlive the reader.
///
/// Errors   both: Error(data): the module or its library is missing. Whatever else fails, the next call says
[[nodiscard]] std::unique_ptr<ArchiveReader> read_archive(ArchiveForm form,
                                                          std::span<const std::uint8_t> bytes);
[[nodiscard]] std::unique_ptr<ArchiveWriter> write_tar(int descriptor);

}  // namespace paceline::data

extern "C" {
/// The module's functions, which those above call. The caller owns what they return.
struct PacelineArchives {
  paceline::data::ArchiveReader* (*read)(paceline::data::ArchiveForm form,
                                         std::span<const std::uint8_t> bytes);
  paceline::data::ArchiveWriter* (*write_tar)(int descriptor);
};
PacelineArchives paceline_archives();
}
