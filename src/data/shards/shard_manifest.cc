#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/text.h"
#include "base/thread_pool.h"
#include "data/file_bytes.h"
#include "data/image/tar.h"
#include "data/shards/shards.h"

namespace paceline::data {
namespace {

namespace fs = std::filesystem;
using base::ErrorKind;

constexpr std::string_view kMagic = "paceline-shards-1\n";
constexpr std::int64_t kLongestManifest = std::int64_t{1}
                                          << 36;  // 12 bytes for each of 2^32 samples, and more

/// Whether every number of `index` points into what it belongs to.
bool is_sound(const ShardIndex& index) {
  if (index.shards.empty() || index.labels.size() != index.members.size()) return false;
  std::size_t at = 0;
  for (const auto& shard : index.shards) {
    const auto rest = index.members.size() - at;
    if (shard.samples < 1 || static_cast<std::uint64_t>(shard.samples) > rest || shard.bytes < 0 ||
        shard.others < 0 || shard.name.empty() || shard.name.find('\0') != std::string::npos)
      return false;
    for (const auto end = at + static_cast<std::size_t>(shard.samples); at < end; ++at)
      if (index.members[at].block * kTarBlock + index.members[at].bytes >
          static_cast<std::uint64_t>(shard.bytes))
        return false;
  }
  return at == index.members.size() &&
         std::ranges::all_of(index.labels, [&](auto label) { return label < index.texts.size(); });
}

/// The shards as they are on the disk, without their samples.
std::vector<Shard> look_at(std::span<const fs::path> paths) {
  std::vector<Shard> shards;
  const auto folder = paths.front().parent_path();
  for (const auto& path : paths) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0)
      base::fail(ErrorKind::data, "{}: the shard cannot be read: {}; fetch it again", path.string(),
                 std::system_category().message(errno));
    if (!S_ISREG(status.st_mode))
      base::fail(ErrorKind::data, "{}: is not a regular file, and a shard is a tar archive", path.string());
    auto name = path.lexically_relative(folder).generic_string();
    shards.push_back({.name = name.empty() ? path.generic_string() : std::move(name),
                      .bytes = status.st_size,
                      .modified_ns = modified_ns(status)});
  }
  return shards;
}

bool is_unchanged(const Shard& then, const Shard& now) {
  return then.name == now.name && then.bytes == now.bytes && then.modified_ns == now.modified_ns;
}

/// Where a manifest of these shards may lie, the best place first.
std::vector<fs::path> places_of(std::span<const fs::path> paths, const std::vector<Shard>& shards,
                                const std::string& field) {
  constexpr std::size_t kDigits = 16;
  std::string list = field;
  for (const auto& shard : shards) list.append(1, '\0').append(shard.name);
  const auto folder = paths.front().parent_path();
  const auto file_of = [&](const std::string& text) {
    return fmt::format("{}{}.index", kShardManifest, base::sha256_of_text(text).substr(0, kDigits));
  };
  std::error_code unknown;
  const auto whole = fs::absolute(folder, unknown).lexically_normal().string();
  return {folder / file_of(list), base::cache_directory() / "shards" / file_of(whole + '\0' + list)};
}

/// What is known of the shards: `now` as they are, with the samples of `before` where they have not changed.
/// Lists the others.
ShardIndex completed(std::span<const fs::path> paths, std::vector<Shard> now, const std::string& field,
                     const std::optional<ShardIndex>& before, int threads) {
  std::vector<std::size_t> changed;
  const auto is_kept = [&](std::size_t i) {
    return before && i < before->shards.size() && is_unchanged(before->shards[i], now[i]);
  };
  for (std::size_t i = 0; i < now.size(); ++i)
    if (!is_kept(i)) changed.push_back(i);
  std::vector<ShardIndex> listed(changed.size());
  const int helpers =
      static_cast<int>(std::clamp<std::size_t>(changed.size(), 1, static_cast<std::size_t>(threads)));
  base::ThreadPool(helpers).run(static_cast<int>(changed.size()), [&](int item, int) {
    const auto i = static_cast<std::size_t>(item);
    listed[i] = list_shard(paths[changed[i]], field);
  });
  ShardIndex index{.field = field, .shards = std::move(now), .members = {}, .labels = {}, .texts = {}};
  std::unordered_map<std::string, std::uint32_t> numbers;  // of its texts
  const auto append = [&](const ShardIndex& from, std::size_t first, std::size_t count) {
    index.members.insert(index.members.end(), from.members.begin() + static_cast<std::ptrdiff_t>(first),
                         from.members.begin() + static_cast<std::ptrdiff_t>(first + count));
    for (auto i = first; i < first + count; ++i) {
      const auto& text = from.texts[from.labels[i]];
      const auto [at, is_new] = numbers.emplace(text, static_cast<std::uint32_t>(index.texts.size()));
      if (is_new) index.texts.push_back(text);
      index.labels.push_back(at->second);
    }
  };
  std::size_t next_changed = 0, in_before = 0;
  for (std::size_t i = 0; i < index.shards.size(); ++i) {
    const auto count_before =
        before && i < before->shards.size() ? static_cast<std::size_t>(before->shards[i].samples) : 0;
    auto& shard = index.shards[i];
    if (next_changed < changed.size() && changed[next_changed] == i) {
      ShardIndex& one = listed[next_changed++];
      shard.samples = one.shards.front().samples;
      shard.others = one.shards.front().others;
      append(one, 0, one.members.size());
      one = {};
    } else {
      shard.samples = before->shards[i].samples;
      shard.others = before->shards[i].others;
      append(*before, in_before, count_before);
    }
    in_before += count_before;
  }
  index.members.shrink_to_fit();
  index.labels.shrink_to_fit();
  return index;
}

}  // namespace

std::optional<ShardIndex> shard_index_from_body(std::string_view body) {
  try {
    auto index = base::from_bytes<ShardIndex>(body);
    if (!is_sound(index)) return std::nullopt;
    index.members.shrink_to_fit();
    index.labels.shrink_to_fit();
    return index;
  } catch (const base::Error&) {
    return std::nullopt;
  }
}

std::optional<ShardIndex> shard_index_from(std::string_view bytes) {
  if (!bytes.starts_with(kMagic)) return std::nullopt;
  bytes.remove_prefix(kMagic.size());
  if (bytes.size() <= base::kSha256Digits || bytes[base::kSha256Digits] != '\n') return std::nullopt;
  const auto body = bytes.substr(base::kSha256Digits + 1);
  if (base::sha256_of_text(body) != bytes.substr(0, base::kSha256Digits)) return std::nullopt;
  return shard_index_from_body(body);
}

std::string shard_manifest_of(const ShardIndex& index) {
  const auto body = base::to_bytes(index);
  return fmt::format("{}{}\n", kMagic, base::sha256_of_text(body)) + body;
}

OpenedIndex open_shard_index(std::span<const fs::path> paths, const std::string& field, int threads) {
  base::expects(!paths.empty(), "there are shards");
  auto now = look_at(paths);
  const auto places = places_of(paths, now, field);
  OpenedIndex opened;
  std::optional<ShardIndex> before;
  std::string why;
  for (const auto& place : places) {
    if (!base::is_file(place)) continue;
    try {
      before = shard_index_from(base::read_regular_file(place, kLongestManifest));
    } catch (const base::Error&) {
      before.reset();
    }
    if (before && before->field == field && before->shards.size() == now.size()) {
      opened.manifest = place;
      break;
    }
    before.reset();
    why = fmt::format("{} is damaged, or of another version", place.string());
  }
  if (before) {
    std::size_t changed = 0, first = 0;
    for (auto i = now.size(); i-- > 0;)
      if (!is_unchanged(before->shards[i], now[i])) {
        ++changed;
        first = i;
      }
    if (changed == 0) {
      opened.index = std::move(*before);
      return opened;
    }
    why = fmt::format("{} changed since, the first '{}'", base::counted(changed, "shard has", "shards have"),
                      now[first].name);
  }
  opened.manifest.clear();
  opened.index = completed(paths, std::move(now), field, before, threads);
  const auto bytes = shard_manifest_of(opened.index);
  std::string refused;
  for (const auto& place : places) try {
      base::write_file(place, bytes);
      opened.manifest = place;
      break;
    } catch (const base::Error& error) {
      refused = error.what();
    }
  const auto samples = opened.index.members.size(), shards = opened.index.shards.size();
  opened.notes.push_back(fmt::format("the list of the {} samples in {} was {}{}: {}", samples,
                                     base::counted(static_cast<std::int64_t>(shards), "shard"),
                                     why.empty() ? "made" : "made anew, because " + why,
                                     opened.manifest.empty() ? ", but could not be written" : " and written",
                                     opened.manifest.empty() ? refused : opened.manifest.string()));
  return opened;
}

}  // namespace paceline::data
