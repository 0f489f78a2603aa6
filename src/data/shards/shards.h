#pragma once

/// Data sets in shards: uncompressed tar files whose members KEY.jpg and KEY.cls are a sample, as WebDataset
/// keeps them.
///
/// shard_names.cc finds the files, list_shard.cc lists the samples of each, shard_manifest.cc keeps the lists
/// in a file, and store.cc reads the images. A key is a member's path up to the first dot of its name.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/archive.h"
#include "data/image/scan.h"

namespace paceline::data {

/// The files that `pattern` names, in this order: "train-{0000..0146}.tar" with as many digits as written,
/// "train-*.tar" as a shell's, sorted by name, and several patterns joined by "::".
///
/// Errors   Error(usage): a range without its end, too many files. Error(data): no such file, or one twice
[[nodiscard]] std::vector<std::filesystem::path> shard_paths(const std::string& pattern);

struct Shard {
  std::string name;              ///< its path below the folder of the first shard
  std::int64_t bytes = 0;        ///< of the file
  std::int64_t modified_ns = 0;  ///< when it last changed, on the file system's clock
  std::int64_t samples = 0;
  std::int64_t others = 0;  ///< members that are neither the image nor the label of a sample
};
template <typename A>
void fields(A& archive, base::In<A, Shard>& value) {
  base::each_member(archive, value.name, value.bytes, value.modified_ns, value.samples, value.others);
}

/// Where an encoded image is in its shard.
struct ShardMember {
  std::uint32_t block = 0;  ///< its offset / kTarBlock
  std::uint32_t bytes = 0;
};

/// The samples of all shards, shard after shard, in the order of the tar files.
///
/// Cost     12 bytes a sample
struct ShardIndex {
  std::string field;  ///< of KEY.json, which says the class; "": KEY.cls does
  std::vector<Shard> shards;
  std::vector<ShardMember> members;   ///< [samples]
  std::vector<std::uint32_t> labels;  ///< [samples]: in `texts`
  std::vector<std::string> texts;     ///< each label once, as the files say it
};
template <typename A>
void fields(A& archive, base::In<A, ShardIndex>& value) {
  base::each_member(archive, value.field, value.shards, value.members, value.labels, value.texts);
}

/// The samples of one shard. `texts` has no order.
///
/// Cost     reads the headers of the file, and the labels
/// Errors   Error(data) with the shard and a member: not a whole tar archive, an image without a label, a
///          label without an image, a key twice, no sample
[[nodiscard]] ShardIndex list_shard(const std::filesystem::path& path, const std::string& field);

// The manifest: the index of a list of shards in a file beside the first of them or, where that folder cannot
// be written, in the cache.
//
//     "paceline-shards-1" LF SHA-256 LF                64 hexadecimal digits, of all that follows
//     ShardIndex as base/archive.h writes it           little-endian; lists and texts begin with their length

inline constexpr const char* kShardManifest =
    "paceline-shards-";  ///< how its name begins; it ends in ".index"

/// The bytes of a manifest as an index; nothing if they are damaged or of another version.
[[nodiscard]] std::optional<ShardIndex> shard_index_from(std::string_view bytes);
/// The same of what follows the SHA-256.
[[nodiscard]] std::optional<ShardIndex> shard_index_from_body(std::string_view body);
/// A manifest's bytes.
[[nodiscard]] std::string shard_manifest_of(const ShardIndex& index);

struct OpenedIndex {
  ShardIndex index;
  std::filesystem::path manifest;  ///< empty: it could not be written
  std::vector<std::string> notes;  ///< that it was written, and why it was made anew
};
/// Reads the manifest of `paths`. Shards that are not in it, or have changed since, are listed and a manifest
/// is written. Whoever wrote shards calls it to give them their manifest.
///
/// Cost     with a manifest: reads it, and asks for the times of all shards
/// Errors   Error(data): a shard that is not there; as list_shard()
[[nodiscard]] OpenedIndex open_shard_index(std::span<const std::filesystem::path> paths,
                                           const std::string& field, int threads);

/// The images of shards, which are read at their offsets. Shards stay open, but at most `most_open` of them.
///
/// Errors   bytes: Error(data): a shard that is gone, shorter, or another file than when it was listed
class ShardStore final : public ImageStore {
 public:
  static constexpr std::size_t kMostOpen = 128;
  explicit ShardStore(std::size_t most_open = kMostOpen);
  ~ShardStore() override;

  /// Appends the samples of `index`, whose paths are `paths`. Call before any read.
  ///
  /// Requires  fewer than 2^32 samples
  void add(std::span<const std::filesystem::path> paths, const ShardIndex& index);

  [[nodiscard]] std::int64_t size() const override { return static_cast<std::int64_t>(members_.size()); }
  /// The shard and the member's name, of which tar's header has 100 letters.
  [[nodiscard]] std::string name(std::int64_t index) const override;
  [[nodiscard]] std::string path_below(std::int64_t index) const override;
  [[nodiscard]] std::span<const std::uint8_t> bytes(std::int64_t index,
                                                    std::vector<std::uint8_t>& buffer) const override;
  [[nodiscard]] std::int64_t stored_bytes(std::int64_t index) const override {
    return members_[static_cast<std::size_t>(index)].bytes;
  }
  [[nodiscard]] std::span<const std::int64_t> shard_ends() const override { return ends_; }
  [[nodiscard]] std::int64_t resident_bytes() const;

 private:
  class OpenFiles;
  struct File {
    std::filesystem::path path;
    std::int64_t bytes, modified_ns;
  };
  [[nodiscard]] std::size_t shard_of(std::int64_t index) const;

  std::vector<File> files_;
  std::vector<std::int64_t> ends_;  ///< [shards]: the first sample of the next
  std::vector<ShardMember> members_;
  std::unique_ptr<OpenFiles> open_;
};

}  // namespace paceline::data
