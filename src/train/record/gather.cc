#include "train/record/gather.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <span>

namespace paceline::train {
namespace {

/// FNV-1a over the words that `word` makes of the values. It does not protect against malice, which is not
/// necessary.
template <typename Values, typename Word>
std::uint64_t hash_of(const Values& values, const Word& word) {
  std::uint64_t hash = 14695981039346656037u;
  for (const auto value : values) hash = (hash ^ word(value)) * 1099511628211u;
  return hash;
}

/// The first rank whose hash differs from rank 0's.
std::optional<int> rank_with_another(comm::Communicator& communicator, std::uint64_t hash) {
  std::vector<std::uint64_t> all(static_cast<std::size_t>(communicator.size()));
  communicator.all_gather(std::as_bytes(std::span(&hash, 1)), std::as_writable_bytes(std::span(all)));
  const auto other =
      std::find_if(all.begin(), all.end(), [&](std::uint64_t one) { return one != all.front(); });
  if (other == all.end()) return std::nullopt;
  return static_cast<int>(other - all.begin());
}

}  // namespace

std::string compare_weights(comm::Communicator& communicator, engine::Engine& engine) {
  engine.fetch();
  const auto word = [](float weight) { return std::bit_cast<std::uint32_t>(weight); };
  const auto differs = rank_with_another(communicator, hash_of(engine.weights(), word));
  return differs ? fmt::format(
                       "the weights of rank {} are not bit for bit those of rank 0: do all hosts have the "
                       "same processors?",
                       *differs)
                 : "all ranks end with the same weights, bit for bit";
}

bool is_same_everywhere(comm::Communicator& communicator, std::string_view text) {
  const auto hash =
      hash_of(text, [](char letter) { return std::uint32_t{static_cast<unsigned char>(letter)}; });
  return !rank_with_another(communicator, hash);
}

std::int64_t sum_of(comm::Communicator& communicator, std::int64_t count) {
  auto sum = static_cast<double>(count);
  communicator.all_reduce(std::span(&sum, 1), comm::Reduce::sum);
  return static_cast<std::int64_t>(sum);
}

}  // namespace paceline::train
