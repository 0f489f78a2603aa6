#include "data/twins.h"

#include <unordered_map>

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

std::vector<Twin> find(std::span<const std::uint64_t> hashes, const IsEqual& is_equal, Originals& originals) {
  std::vector<Twin> twins;
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    const auto sample = static_cast<std::int64_t>(i);
    const auto original = original_of(originals, hashes[i], sample, is_equal);
    if (original < 0)
      originals.emplace(hashes[i], sample);
    else
      twins.push_back({original, sample});
  }
  return twins;
}

}  // namespace

std::vector<Twin> find_twins(std::span<const std::uint64_t> hashes, const IsEqual& is_equal) {
  Originals originals;
  return find(hashes, is_equal, originals);
}

std::vector<Twin> find_twins(std::span<const std::uint64_t> hashes, const IsEqual& is_equal_inside,
                             std::span<const std::uint64_t> other, const IsEqual& is_equal) {
  Originals originals;
  find(hashes, is_equal_inside, originals);
  std::vector<Twin> twins;
  for (std::size_t i = 0; i < other.size(); ++i) {
    const auto sample = static_cast<std::int64_t>(i);
    const auto original = original_of(originals, other[i], sample, is_equal);
    if (original >= 0) twins.push_back({original, sample});
  }
  return twins;
}

}  // namespace paceline::data
