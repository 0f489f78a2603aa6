#pragma once

/// Shards for the tests: small pictures with their labels, and tar files made byte by byte.

#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../files.h"
#include "../image/pictures.h"
#include "data/image/tar.h"

namespace paceline::data {

inline Bytes bytes_of(std::string_view text) { return {text.begin(), text.end()}; }

/// A picture of 8x8 that tells `number` apart from others.
inline Bytes numbered_picture(int number) {
  return to_ppm(painted(8, 8, [&](int y, int x) {
    return Rgb{static_cast<std::uint8_t>(number), static_cast<std::uint8_t>(number / 256),
               static_cast<std::uint8_t>(16 * y + x)};
  }));
}

using Members = std::vector<std::pair<std::string, Bytes>>;

/// Packs `members` in this order.
inline void write_tar(const std::filesystem::path& path, const Members& members) {
  TarWriter tar(path);
  for (const auto& [name, bytes] : members) tar.add(name, bytes);
  tar.finish();
}

/// Samples first .. first + count - 1 of `classes` classes; a label is the number modulo `classes`.
inline Members numbered_samples(int first, int count, int classes = 3) {
  Members members;
  for (int i = first; i < first + count; ++i) {
    members.emplace_back(fmt::format("{:06}.ppm", i), numbered_picture(i));
    members.emplace_back(fmt::format("{:06}.cls", i), bytes_of(std::to_string(i % classes)));
  }
  return members;
}

/// Shards DIR/train-0.tar, train-1.tar ... with these many samples each, numbered on from shard to shard.
inline void write_shards(const std::filesystem::path& folder, const std::vector<int>& counts, int classes = 3,
                         const std::string& name = "train") {
  int first = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    write_tar(folder / fmt::format("{}-{}.tar", name, i), numbered_samples(first, counts[i], classes));
    first += counts[i];
  }
}

/// The file's bytes.
inline Bytes read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(file), {});
}

}  // namespace paceline::data
