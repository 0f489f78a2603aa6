#include "data/image/inspect.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/start_thread.h"
#include "data/image/decode.h"
#include "data/twins.h"

namespace paceline::data {
namespace {

/// Calls `body(thread's buffers, i)` for every i below `count`, on `threads` threads; throws what one threw.
struct Buffers {
  std::vector<std::uint8_t> encoded;
  RgbImage decoded;
};
void for_each_image(std::size_t count, int threads, const std::function<void(Buffers&, std::size_t)>& body) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr error;
  const auto work = [&] {
    Buffers buffers;
    try {
      for (std::size_t i = next++; i < count; i = next++) body(buffers, i);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
      next = count;
    }
  };
  {
    std::vector<std::jthread> workers;
    try {
      for (int i = 1; i < threads; ++i) workers.emplace_back(work);
    } catch (const std::system_error& refusal) {
      next = count;  // those that were started end at once
      throw base::refused_thread(fmt::format("decoding thread {} of {}", workers.size() + 2, threads),
                                 refusal);
    }
    work();
  }
  if (error) std::rethrow_exception(error);
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

/// What a store says of a file that it cannot read begins with the file's name, which stands beside it
/// already.
std::string without_name(std::string said, const std::string& name) {
  if (said.starts_with(name + ": ")) said.erase(0, name.size() + 2);
  return said;
}

}  // namespace

std::vector<BrokenEntry> find_broken(const ImageStore& store, std::span<const std::uint32_t> images,
                                     int threads) {
  std::mutex mutex;
  std::vector<BrokenEntry> broken;
  const auto found = [&](std::size_t at, const std::string& reason) {
    const std::lock_guard lock(mutex);
    broken.push_back({at, store.name(images[at]), reason});
  };
  for_each_image(images.size(), threads, [&](Buffers& buffers, std::size_t i) {
    try {
      const auto bytes = store.bytes(images[i], buffers.encoded);
      decode_image(bytes, read_image_header(bytes), 1, buffers.decoded);
    } catch (const BrokenImage& error) {
      found(i, error.what());
    } catch (const base::Error& error) {  // a file that cannot be opened
      found(i, without_name(error.what(), store.name(images[i])));
    }
  });
  std::sort(broken.begin(), broken.end(), [](const auto& a, const auto& b) { return a.at < b.at; });
  return broken;
}

std::vector<BrokenEntry> find_broken_once(const ImageStore& store, std::span<const std::uint32_t> images,
                                          int threads) {
  std::uint64_t key = images.size();
  for (const auto image : images) {
    const std::string name = store.name(image);
    key = (key ^ hash_of({reinterpret_cast<const std::uint8_t*>(name.data()), name.size()})) * 1099511628211u;
  }
  static std::mutex mutex;
  static std::map<std::uint64_t, std::vector<BrokenEntry>> known;
  const std::lock_guard lock(mutex);
  const auto [found, is_new] = known.try_emplace(key);
  if (is_new) {
    try {
      found->second = find_broken(store, images, threads);
    } catch (...) {
      known.erase(found);
      throw;
    }
  }
  return found->second;
}

PartReport inspect(const ImageDataset& set, int classes, bool decode, int threads) {
  const auto count = static_cast<std::size_t>(set.size());
  struct ImageFacts {
    ImageHeader header;
    std::uint64_t hash = 0;
    std::uint64_t bytes = 0;
    std::string broken;
  };
  std::vector<ImageFacts> seen(count);
  for_each_image(count, threads, [&](Buffers& buffers, std::size_t i) {
    ImageFacts& at = seen[i];
    try {
      const auto bytes = set.encoded(static_cast<std::int64_t>(i), buffers.encoded);
      at.bytes = bytes.size();
      at.hash = hash_of(bytes);
      at.header = read_image_header(bytes);
      if (decode) decode_image(bytes, at.header, 1, buffers.decoded);
    } catch (const BrokenImage& error) {
      at.broken = error.what();
    } catch (const base::Error& error) {
      at.broken = without_name(error.what(), set.name(static_cast<std::int64_t>(i)));
    }
  });
  PartReport report{.images = set.size(),
                    .per_class = std::vector<std::int64_t>(static_cast<std::size_t>(classes))};
  for (std::size_t i = 0; i < count; ++i) {
    const auto index = static_cast<std::int64_t>(i);
    ++report.per_class[static_cast<std::size_t>(set.label(index))];
    report.encoded_bytes += static_cast<std::int64_t>(seen[i].bytes);
    report.hashes.push_back(seen[i].hash);
    if (!seen[i].broken.empty()) report.broken.push_back({i, set.name(index), seen[i].broken});
    const ImageHeader& header = seen[i].header;
    if (header.height == 0) continue;
    report.heights.push_back(header.height);
    report.widths.push_back(header.width);
    ++report.kinds[fmt::format("{} {}", name(header.kind), header.colour)];
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
        return false;  // cannot be read: among the broken
      }
    };
  };
  const auto twins = &first == &second ? find_twins(first_report.hashes, equal(first, first))
                                       : find_twins(first_report.hashes, equal(first, first),
                                                    second_report.hashes, equal(first, second));
  std::vector<Duplicate> duplicates;
  for (const auto& twin : twins)
    duplicates.push_back({first.name(twin.first), second.name(twin.second),
                          first.label(twin.first) == second.label(twin.second)});
  return duplicates;
}

}  // namespace paceline::data
