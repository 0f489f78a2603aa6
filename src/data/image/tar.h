#pragma once

/// Reads tar archives in place, and writes them.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/archive.h"
#include "data/file_bytes.h"
#include "data/image/listing.h"
#include "data/image/scan.h"

namespace paceline::data {

inline constexpr std::uint64_t kTarBlock = 512;  ///< headers and data begin at its multiples

/// A file of an archive.
struct TarMember {
  std::string directory, name;
  std::uint64_t begin = 0, bytes = 0;  ///< its data in the archive
  std::string leads_to = {};           ///< a link whose file is not known yet: that file's path
  bool is_left_out = false;

  [[nodiscard]] std::string path() const { return directory.empty() ? name : directory + "/" + name; }
};

struct TarContents {
  std::vector<TarMember> members;  ///< in the archive's order; a link has the data of its file
  std::int64_t sparse = 0;         ///< files with holes, which are left out
  std::int64_t dangling_links = 0;
  std::string first_dangling_link;
};

/// The files of an uncompressed tar archive, whose bytes are `file`.
///
/// Cost     reads the headers
/// Errors   Error(data): not a tar archive (or a compressed one), cut short, more data after its end
[[nodiscard]] TarContents read_tar(const std::filesystem::path& path, const FileBytes& file);

/// The images of an uncompressed tar archive. The archive is mapped: nothing is copied, and all workers and
/// processes of a host share its pages. Members are ordered by path, like the files of a folder; links stand
/// for the members that they lead to.
class TarStore final : public ImageStore {
 public:
  /// Errors   Error(data): not a tar archive (or a compressed one), cut short
  explicit TarStore(std::filesystem::path path);

  [[nodiscard]] std::int64_t size() const override { return static_cast<std::int64_t>(members_.size()); }
  [[nodiscard]] std::string name(std::int64_t index) const override;
  [[nodiscard]] std::string path_below(std::int64_t index) const override {
    return listing_.path(static_cast<std::size_t>(index));
  }
  [[nodiscard]] std::span<const std::uint8_t> bytes(std::int64_t index,
                                                    std::vector<std::uint8_t>& buffer) const override;
  [[nodiscard]] std::int64_t stored_bytes(std::int64_t index) const override {
    return static_cast<std::int64_t>(members_[static_cast<std::size_t>(index)].bytes);
  }

  [[nodiscard]] const ImageListing& listing() const { return listing_; }
  [[nodiscard]] std::int64_t passed_over() const { return passed_over_; }
  [[nodiscard]] const std::vector<PassedOver>& passed_over_in() const { return passed_over_in_; }
  /// The number of links that lead to no member, and the first of them.
  [[nodiscard]] std::int64_t dangling_links() const { return dangling_links_; }
  [[nodiscard]] const std::string& first_dangling_link() const { return first_lost_link_; }

 private:
  struct Member {
    std::uint64_t begin, bytes;
  };

  std::filesystem::path path_;
  FileBytes file_;
  ImageListing listing_;
  std::vector<Member> members_;
  std::int64_t passed_over_ = 0, dangling_links_ = 0;
  std::vector<PassedOver> passed_over_in_;  ///< by folder
  std::string first_lost_link_;
};

/// Writes an uncompressed tar archive. The file appears only with finish().
class TarWriter {
 public:
  /// Errors   this and all members: Error(data) naming the path and the system's reason
  explicit TarWriter(std::filesystem::path path);

  void add(const std::string& name, std::span<const std::uint8_t> bytes);
  void finish();

 private:
  [[noreturn]] void fail() const;

  std::filesystem::path path_;
  base::Replacement file_;
  std::unique_ptr<ArchiveWriter> archive_;  ///< destroyed first, because it writes to the file
};

}  // namespace paceline::data
