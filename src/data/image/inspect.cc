#include "data/image/inspect.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <utility>

#include "base/error.h"
#include "base/thread_pool.h"

namespace paceline::data {
namespace {

/// The earliest sample with each content, by the content's hash.
using Originals = std::unordered_multimap<std::uint64_t, std::int64_t>;

std::int64_t original_of(const Originals& originals, std::uint64_t hash, std::int64_t sample,
                         const IsEqual& is_equal) {
  const auto [begin, end] = originals.equal_range(hash);
  for (auto it = begin; it != end; ++it)
    if (is_equal(it->second, sample)) return it->second;
  return -1;
}

/// The samples that `originals` hold already; `adds`: the others become originals.
std::vector<DuplicatePair> find(std::span<const std::uint64_t> hashes, const IsEqual& is_equal, bool adds,
                                Originals& originals) {
  std::vector<DuplicatePair> duplicates;
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    const auto sample = static_cast<std::int64_t>(i);
    const auto original = original_of(originals, hashes[i], sample, is_equal);
    if (original >= 0)
      duplicates.push_back({original, sample});
    else if (adds)
      originals.emplace(hashes[i], sample);
  }
  return duplicates;
}

/// Calls `body(thread's buffers, i)` for every i below `count` on `threads` threads; rethrows an exception of
/// a thread.
struct Buffers {
  std::vector<std::uint8_t> encoded;
  ImageDecoder decoder;
  RgbImage decoded;
};
void for_each_image(std::size_t count, int threads, const std::function<void(Buffers&, std::size_t)>& body) {
  std::atomic<std::size_t> next{0};
  base::ThreadPool pool(std::max(1, threads));
  pool.run(pool.threads(), [&](int, int) {
    Buffers buffers;
    try {
      for (std::size_t i = next++; i < count; i = next++) body(buffers, i);
    } catch (...) {
      next = count;  // the others need not go on
      throw;
    }
  });
}

/// FNV-1a over 8 bytes at a time (noll's prime): finds candidates, which are then compared byte for byte.
std::uint64_t hash_of(std::span<const std::uint8_t> bytes) {
  std::uint64_t hash = 14695981039346656037u ^ bytes.size();
  std::size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    std::uint64_t word = 0;
    for (std::size_t b = 0; b < 8; ++b) word |= std::uint64_t{bytes[i + b]} << (8 * b);
    hash = (hash ^ word) * 1099511628211u;
    hash ^= hash >> 29;
  }
  for (; i < bytes.size(); ++i) hash = (hash ^ bytes[i]) * 1099511628211u;
  return hash;
}

/// Runs `look`; returns why it could not read or decode its image, "" if it could. `name()` is the image's.
template <typename Look, typename Name>
std::string fault_in(const Look& look, const Name& name) {
  try {
    look();
    return "";
  } catch (const BrokenImage& error) {
    return error.what();
  } catch (const base::Error& error) {  // of a store, which begins with the name that is shown beside it
    std::string said = error.what();
    if (const auto begin = name() + ": "; said.starts_with(begin)) said.erase(0, begin.size());
    return said;
  }
}

constexpr int kClose = 24;        ///< of 255 levels: the noise of a background and what JPEG adds to it
constexpr int kGreyRounding = 6;  ///< levels by which a grey JPEG's channels may differ
constexpr int kSideOfLook = 32;

bool is_grey(const RgbImage& image) {
  for (std::size_t i = 0; i + 2 < image.pixels.size(); i += 3) {
    const auto [least, most] = std::minmax({image.pixels[i], image.pixels[i + 1], image.pixels[i + 2]});
    if (most - least > kGreyRounding) return false;
  }
  return true;
}

/// Whether nine tenths of the pixels in the four corners, a tenth of each side, are close to their median, in
/// every channel. (Edges cannot be used instead: pictures are often cropped to the object, which then touches
/// them.)
bool has_plain_corners(const RgbImage& image) {
  const int tall = std::max(1, image.height / 10), wide = std::max(1, image.width / 10);
  for (int channel = 0; channel < 3; ++channel) {
    std::vector<int> corners;
    for (int y = 0; y < image.height; ++y) {
      if (y >= tall && y < image.height - tall) continue;
      for (int x = 0; x < image.width; ++x)
        if (x < wide || x >= image.width - wide)
          corners.push_back(image.pixels[static_cast<std::size_t>(3 * (y * image.width + x) + channel)]);
    }
    const auto middle = corners.begin() + static_cast<std::ptrdiff_t>(corners.size() / 2);
    std::nth_element(corners.begin(), middle, corners.end());
    const int median = *middle;
    const auto close = std::count_if(corners.begin(), corners.end(),
                                     [&](int value) { return std::abs(value - median) <= kClose; });
    if (10 * close < 9 * static_cast<std::ptrdiff_t>(corners.size())) return false;
  }
  return true;
}

/// A hash for each image of `set` whose length is in `wanted`; for the others their index, which is not
/// expected to equal any hash. An unreadable image counts as unique.
std::vector<std::uint64_t> hashes_where(const ImageDataset& set, const std::vector<std::int64_t>& lengths,
                                        const std::function<bool(std::int64_t)>& wanted, int threads) {
  std::vector<std::uint64_t> hashes(lengths.size());
  for_each_image(lengths.size(), threads, [&](Buffers& buffers, std::size_t i) {
    hashes[i] = i;
    if (!wanted(lengths[i])) return;
    try {
      hashes[i] = hash_of(set.encoded(static_cast<std::int64_t>(i), buffers.encoded));
    } catch (const base::Error&) {
      return;
    }
  });
  return hashes;
}

std::vector<std::int64_t> lengths_of(const ImageDataset& set, int threads) {
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(set.size()));
  for_each_image(lengths.size(), threads, [&](Buffers&, std::size_t i) {
    lengths[i] = set.stored_bytes(static_cast<std::int64_t>(i));
  });
  return lengths;
}

}  // namespace

std::vector<DuplicatePair> find_equal(std::span<const std::uint64_t> hashes, const IsEqual& is_equal) {
  Originals originals;
  return find(hashes, is_equal, true, originals);
}

std::vector<DuplicatePair> find_equal(std::span<const std::uint64_t> hashes, const IsEqual& is_equal_inside,
                                      std::span<const std::uint64_t> other, const IsEqual& is_equal) {
  Originals originals;
  find(hashes, is_equal_inside, true, originals);
  return find(other, is_equal, false, originals);
}

std::vector<ImageFacts> examine_images(const ImageDataset& set, std::span<const std::int64_t> samples,
                                       int threads) {
  std::vector<ImageFacts> looks(samples.size());
  for_each_image(samples.size(), threads, [&](Buffers& buffers, std::size_t i) {
    ImageFacts& look = looks[i];
    const auto examine = [&] {
      const auto bytes = set.encoded(samples[i], buffers.encoded);
      look.header = buffers.decoder.read_header(bytes);
      const double scale = 1.0 * kSideOfLook / std::min(look.header.height, look.header.width);
      buffers.decoder.decode(bytes, look.header, std::min(1.0, scale), buffers.decoded);
      look.grey = is_grey(buffers.decoded);
      look.plain = has_plain_corners(buffers.decoded);
    };
    look.broken = fault_in(examine, [&] { return set.sample_name(samples[i]); });
  });
  return looks;
}

std::vector<BrokenEntry> find_broken(const ImageStore& store, std::span<const std::uint32_t> images,
                                     int threads, const std::optional<Range>& range) {
  std::mutex mutex;
  std::vector<BrokenEntry> broken;
  for_each_image(images.size(), threads, [&](Buffers& buffers, std::size_t i) {
    const auto decode = [&] {
      const auto bytes = store.bytes(images[i], buffers.encoded);
      buffers.decoder.decode(bytes, buffers.decoder.read_header(bytes), 1, buffers.decoded, range);
    };
    const auto name = [&] { return store.name(images[i]); };
    const auto reason = fault_in(decode, name);
    if (reason.empty()) return;
    const std::lock_guard lock(mutex);
    broken.push_back({i, name(), reason});
  });
  std::sort(broken.begin(), broken.end(), [](const auto& a, const auto& b) { return a.at < b.at; });
  return broken;
}

std::vector<BrokenEntry> BrokenImageCache::find(const ImageStore& store,
                                                std::span<const std::uint32_t> images, int threads,
                                                const std::optional<Range>& range) {
  std::uint64_t key = images.size();
  const auto add = [&](const std::string& text) {
    key = (key ^ hash_of({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()})) * 1099511628211u;
  };
  for (const auto image : images) add(store.name(image));
  if (range) add(text_of(*range));
  const std::lock_guard lock(mutex_);
  const auto known = known_.find(key);
  if (known != known_.end()) return known->second;
  return known_.emplace(key, find_broken(store, images, threads, range)).first->second;
}

PartReport inspect(const ImageDataset& set, int classes, bool decode, int threads) {
  const auto count = static_cast<std::size_t>(set.size());
  struct Seen {
    ImageHeader header;
    std::uint64_t hash = 0;
    std::uint64_t bytes = 0;
    std::string broken;
  };
  std::vector<Seen> seen(count);
  for_each_image(count, threads, [&](Buffers& buffers, std::size_t i) {
    Seen& at = seen[i];
    const auto index = static_cast<std::int64_t>(i);
    const auto look = [&] {
      const auto bytes = set.encoded(index, buffers.encoded);
      at.bytes = bytes.size();
      at.hash = hash_of(bytes);
      at.header = buffers.decoder.read_header(bytes);
      if (decode) buffers.decoder.decode(bytes, at.header, 1, buffers.decoded);
    };
    at.broken = fault_in(look, [&] { return set.sample_name(index); });
  });
  PartReport report{.images = set.size(),
                    .per_class = std::vector<std::int64_t>(static_cast<std::size_t>(classes))};
  for (std::size_t i = 0; i < count; ++i) {
    const auto index = static_cast<std::int64_t>(i);
    ++report.per_class[static_cast<std::size_t>(set.label(index))];
    report.encoded_bytes += static_cast<std::int64_t>(seen[i].bytes);
    report.hashes.push_back(seen[i].hash);
    if (!seen[i].broken.empty()) report.broken.push_back({i, set.sample_name(index), seen[i].broken});
    const ImageHeader& header = seen[i].header;
    if (header.height == 0) continue;
    report.heights.push_back(header.height);
    report.widths.push_back(header.width);
    ++report.kinds[fmt::format("{} {}", name(header.kind), header.colour)];
    report.turned += header.turn > 1 ? 1 : 0;
  }
  return report;
}

std::vector<Duplicate> find_duplicates(const ImageDataset& first, const PartReport& first_report,
                                       const ImageDataset& second, const PartReport& second_report) {
  std::vector<std::uint8_t> one, other;
  const auto equal = [&](const ImageDataset& a, const ImageDataset& b) {
    return [&](std::int64_t i, std::int64_t j) {
      try {
        const auto x = a.encoded(i, one), y = b.encoded(j, other);
        return std::equal(x.begin(), x.end(), y.begin(), y.end());
      } catch (const base::Error&) {
        return false;  // unreadable: listed among the broken
      }
    };
  };
  const auto pairs = &first == &second ? find_equal(first_report.hashes, equal(first, first))
                                       : find_equal(first_report.hashes, equal(first, first),
                                                    second_report.hashes, equal(first, second));
  std::vector<Duplicate> duplicates;
  for (const auto& pair : pairs)
    duplicates.push_back({first.sample_name(pair.first), second.sample_name(pair.second),
                          first.label(pair.first) == second.label(pair.second)});
  return duplicates;
}

std::vector<Duplicate> find_duplicates(const ImageDataset& first, const ImageDataset& second, int threads) {
  const bool is_same = &first == &second;
  const auto lengths = lengths_of(first, threads);
  const auto others = is_same ? lengths : lengths_of(second, threads);
  std::map<std::int64_t, std::pair<int, int>> count;  // how many images of each set have a length
  for (const auto length : lengths) ++count[length].first;
  for (const auto length : others) ++count[length].second;
  std::vector<std::int64_t> twice;
  for (const auto& [length, times] : count)
    if (is_same ? times.first > 1 : times.first > 0 && times.second > 0) twice.push_back(length);
  const auto wanted = [&](std::int64_t length) { return std::ranges::binary_search(twice, length); };
  PartReport report{.hashes = hashes_where(first, lengths, wanted, threads)};
  if (is_same) return find_duplicates(first, report, second, report);
  PartReport other{.hashes = hashes_where(second, others, wanted, threads)};
  // Images without a hash are represented by their index; indices of the two sets must not match.
  for (std::size_t i = 0; i < other.hashes.size(); ++i)
    if (!wanted(others[i])) other.hashes[i] = ~std::uint64_t{i};
  return find_duplicates(first, report, second, other);
}

}  // namespace paceline::data
