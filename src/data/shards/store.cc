#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "data/file_bytes.h"
#include "data/image/tar.h"
#include "data/shards/shards.h"

namespace paceline::data {
namespace {

namespace fs = std::filesystem;
using base::ErrorKind;

constexpr const char* kContinue = "put it back, and continue from the last checkpoint";

/// The text of a field of a tar header, which ends at a zero or with the field.
std::string_view header_text(std::span<const std::uint8_t> header, std::size_t at, std::size_t most) {
  const auto text = as_chars(header.subspan(at, most));
  return text.substr(0, text.find('\0'));
}

}  // namespace

/// The shards that are open, at most so many; the one that was not used for the longest time is closed. A
/// reader keeps its shard open until it has read.
///
/// Threads  any number
class ShardStore::OpenFiles {
 public:
  explicit OpenFiles(std::size_t most) : most_(most) { base::expects(most > 0, "a shard may be open"); }

  [[nodiscard]] std::shared_ptr<const base::Descriptor> get(std::size_t shard, const File& file) {
    {
      const std::lock_guard lock(mutex_);
      for (auto& slot : slots_)
        if (slot.shard == shard) {
          slot.used = ++uses_;
          return slot.descriptor;
        }
    }
    auto opened = open(file);  // without the lock: a file system of a cluster takes its time
    const std::lock_guard lock(mutex_);
    if (slots_.size() == most_) slots_.erase(std::ranges::min_element(slots_, {}, &Slot::used));
    slots_.push_back({.shard = shard, .used = ++uses_, .descriptor = opened});
    return opened;
  }

 private:
  struct Slot {
    std::size_t shard;
    std::uint64_t used;
    std::shared_ptr<const base::Descriptor> descriptor;
  };

  static std::shared_ptr<const base::Descriptor> open(const File& file) {
    auto opened = std::make_shared<const base::Descriptor>(
        ::open(file.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat status {};
    if (!opened->is_open() || ::fstat(opened->get(), &status) != 0)
      base::fail(ErrorKind::data, "{}: the shard cannot be read: {}; {}", file.path.string(),
                 std::system_category().message(errno), kContinue);
    if (!S_ISREG(status.st_mode) || status.st_size != file.bytes || modified_ns(status) != file.modified_ns)
      base::fail(ErrorKind::data,
                 "{}: the shard has changed since this run listed it ({} bytes then, {} now); {}",
                 file.path.string(), file.bytes, status.st_size, kContinue);
    return opened;
  }

  const std::size_t most_;
  std::mutex mutex_;
  std::vector<Slot> slots_;
  std::uint64_t uses_ = 0;
};

ShardStore::ShardStore(std::size_t most_open) : open_(std::make_unique<OpenFiles>(most_open)) {}
ShardStore::~ShardStore() = default;

void ShardStore::add(std::span<const fs::path> paths, const ShardIndex& index) {
  base::expects(paths.size() == index.shards.size(), "every shard has a path");
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const auto& shard = index.shards[i];
    files_.push_back({.path = paths[i], .bytes = shard.bytes, .modified_ns = shard.modified_ns});
    ends_.push_back((ends_.empty() ? 0 : ends_.back()) + shard.samples);
  }
  members_.insert(members_.end(), index.members.begin(), index.members.end());
  base::expects(members_.size() <= UINT32_MAX && ends_.back() == size(), "samples have numbers of 32 bits");
}

std::size_t ShardStore::shard_of(std::int64_t index) const {
  base::expects(index >= 0 && index < size(), "0 <= index < size");
  return static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), index) - ends_.begin());
}

std::span<const std::uint8_t> ShardStore::bytes(std::int64_t index, std::vector<std::uint8_t>& buffer) const {
  const auto shard = shard_of(index);
  const auto& file = files_[shard];
  const auto& member = members_[static_cast<std::size_t>(index)];
  const auto opened = open_->get(shard, file);
  if (buffer.size() < member.bytes) buffer.resize(member.bytes);
  const auto dst = std::span(buffer).first(member.bytes);
  const auto got = read_at(opened->get(), member.block * kTarBlock, dst);
  if (got < 0)
    base::fail(ErrorKind::data, "{}: the shard cannot be read: {}; {}", file.path.string(),
               std::system_category().message(errno), kContinue);
  if (got < std::int64_t{member.bytes}) {
    std::error_code unknown;
    base::fail(ErrorKind::data,
               "{}: the shard ends inside a sample: it has {} bytes, but had {} when it was listed; {}",
               file.path.string(), fs::file_size(file.path, unknown), file.bytes, kContinue);
  }
  return dst;
}

std::string ShardStore::name(std::int64_t index) const {
  const auto shard = shard_of(index);
  const auto& file = files_[shard];
  const auto first = shard == 0 ? 0 : ends_[shard - 1];
  const auto number = fmt::format("{}: image {}", file.path.string(), index - first + 1);
  const auto block = members_[static_cast<std::size_t>(index)].block;
  std::array<std::uint8_t, kTarBlock> header{};
  try {
    const auto opened = open_->get(shard, file);
    if (block == 0 ||
        read_at(opened->get(), (block - 1) * kTarBlock, header) < static_cast<std::int64_t>(kTarBlock))
      return number;
  } catch (const base::Error&) {
    return number;
  }
  constexpr std::size_t kName = 100, kMark = 257, kPrefix = 345, kPrefixBytes = 155;
  const auto member = header_text(header, 0, kName);
  if (header_text(header, kMark, 5) != "ustar" || member.empty()) return number;
  const bool has_prefix = header[kMark + 5] == 0 && header[kPrefix] != 0;  // GNU's mark ends with a blank
  return fmt::format(
      "{}:{}", file.path.string(),
      base::visible(has_prefix ? fmt::format("{}/{}", header_text(header, kPrefix, kPrefixBytes), member)
                               : std::string(member)));
}

std::string ShardStore::path_below(std::int64_t index) const {
  return fmt::format("{}:{}", files_[shard_of(index)].path.filename().string(),
                     members_[static_cast<std::size_t>(index)].block);
}

std::int64_t ShardStore::resident_bytes() const {
  return static_cast<std::int64_t>(members_.capacity() * sizeof(ShardMember) + files_.size() * sizeof(File));
}

}  // namespace paceline::data
