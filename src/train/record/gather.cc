#include "train/record/gather.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <span>

namespace paceline::train {
namespace {

/// FNV-1a over words. It does not protect against malice, which is not necessary.
class Hash {
 public:
  void add(std::uint32_t word) { value_ = (value_ ^ word) * 1099511628211u; }
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 14695981039346656037u;
};

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
  Hash hash;
  for (const float weight : engine.weights()) hash.add(std::bit_cast<std::uint32_t>(weight));
  const auto differs = rank_with_another(communicator, hash.value());
  return differs ? fmt::format(
                       "the weights of rank {} are not bit for bit those of rank 0: do all hosts have the "
                       "same processors?",
                       *differs)
                 : "all ranks end with the same weights, bit for bit";
}

bool is_same_everywhere(comm::Communicator& communicator, std::string_view text) {
  Hash hash;
  for (const char letter : text) hash.add(static_cast<unsigned char>(letter));
  return !rank_with_another(communicator, hash.value());
}

std::int64_t sum_of(comm::Communicator& communicator, std::int64_t count) {
  auto sum = static_cast<double>(count);
  communicator.all_reduce(std::span(&sum, 1), comm::Reduce::sum);
  return static_cast<std::int64_t>(sum);
}

}  // namespace paceline::train
