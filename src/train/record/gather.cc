#include "train/record/gather.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

namespace paceline::train {
namespace {

constexpr std::size_t kHost = 8;      ///< doubles that hold a host's name
constexpr std::size_t kFigures = 15;  ///< figures besides phases, host, cores and steps

/// One rank's record as numbers, of the same length on every rank: `cores` is padded with -1. Integers of
/// this size are exact in double.
std::vector<double> pack(const measure::RankRecord& rank, std::size_t cores) {
  std::vector<double> numbers{rank.wall_s,
                              rank.communication_s,
                              rank.transfer_s,
                              rank.late_peer_s,
                              rank.loader_prepare_s,
                              static_cast<double>(rank.loader_threads),
                              rank.loader_processor_s.value_or(0),
                              static_cast<double>(rank.loader_waits.value_or(0)),
                              rank.loader_ready.value_or(0),
                              static_cast<double>(rank.loader_queue.value_or(0)),
                              static_cast<double>(rank.process.value_or(-1)),
                              static_cast<double>(rank.peak_bytes.value_or(-1)),
                              static_cast<double>(rank.bytes_sent.value_or(-1)),
                              static_cast<double>(rank.bytes_received.value_or(-1)),
                              rank.steps_s.value_or(-1)};
  numbers.insert(numbers.end(), rank.phases.begin(), rank.phases.end());
  std::array<double, kHost> host{};
  const auto name = rank.host.value_or("");
  std::copy_n(name.data(), std::min(name.size(), sizeof host - 1), reinterpret_cast<char*>(host.data()));
  numbers.insert(numbers.end(), host.begin(), host.end());
  for (std::size_t i = 0; i < cores; ++i) numbers.push_back(i < rank.cores.size() ? rank.cores[i] : -1);
  numbers.insert(numbers.end(), rank.step_s.begin(), rank.step_s.end());
  if (rank.own_s) numbers.insert(numbers.end(), rank.own_s->begin(), rank.own_s->end());
  return numbers;
}

measure::RankRecord unpack(std::span<const double> numbers, std::size_t cores, bool has_own, int number) {
  measure::RankRecord rank;
  rank.rank = number;
  rank.wall_s = numbers[0];
  rank.communication_s = numbers[1];
  rank.transfer_s = numbers[2];
  rank.late_peer_s = numbers[3];
  rank.loader_prepare_s = numbers[4];
  rank.loader_threads = static_cast<int>(numbers[5]);
  rank.loader_processor_s = numbers[6];
  rank.loader_waits = static_cast<std::int64_t>(numbers[7]);
  rank.loader_ready = numbers[8];
  rank.loader_queue = static_cast<std::int64_t>(numbers[9]);
  const auto known = [&](std::size_t index) {
    return numbers[index] < 0 ? std::nullopt : std::optional(static_cast<std::int64_t>(numbers[index]));
  };
  if (const auto process = known(10)) rank.process = static_cast<int>(*process);
  rank.peak_bytes = known(11);
  rank.bytes_sent = known(12);
  rank.bytes_received = known(13);
  if (numbers[14] >= 0) rank.steps_s = numbers[14];
  auto rest = numbers.subspan(kFigures);
  std::copy_n(rest.begin(), measure::kPhases, rank.phases.begin());
  rest = rest.subspan(measure::kPhases);
  rank.host = std::string(reinterpret_cast<const char*>(rest.data()));
  rest = rest.subspan(kHost);
  for (std::size_t i = 0; i < cores; ++i)
    if (rest[i] >= 0) rank.cores.push_back(static_cast<int>(rest[i]));
  rest = rest.subspan(cores);
  const auto steps = static_cast<std::ptrdiff_t>(has_own ? rest.size() / 2 : rest.size());
  rank.step_s.assign(rest.begin(), rest.begin() + steps);
  if (has_own) rank.own_s.emplace(rest.begin() + steps, rest.end());
  return rank;
}

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

std::vector<measure::RankRecord> gather_ranks(comm::Communicator& communicator,
                                              const measure::RankRecord& mine) {
  double most = static_cast<double>(mine.cores.size());
  communicator.all_reduce(std::span(&most, 1), comm::Reduce::max);
  const auto cores = static_cast<std::size_t>(most);
  const auto numbers = pack(mine, cores);
  std::vector<double> all(numbers.size() * static_cast<std::size_t>(communicator.size()));
  communicator.all_gather(std::as_bytes(std::span(numbers)), std::as_writable_bytes(std::span(all)));
  std::vector<measure::RankRecord> ranks;
  for (int rank = 0; rank < communicator.size(); ++rank)
    ranks.push_back(
        unpack(std::span(all).subspan(static_cast<std::size_t>(rank) * numbers.size(), numbers.size()), cores,
               mine.own_s.has_value(), rank));
  return ranks;
}

std::optional<int> rank_that_differs(comm::Communicator& communicator, std::span<const float> weights) {
  Hash hash;
  for (const float weight : weights) hash.add(std::bit_cast<std::uint32_t>(weight));
  return rank_with_another(communicator, hash.value());
}

std::string compare_weights(comm::Communicator& communicator, engine::Engine& engine) {
  engine.fetch();
  const auto differs = rank_that_differs(communicator, engine.weights());
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

std::vector<std::string> gather_texts(comm::Communicator& communicator, const std::string& mine) {
  auto longest = static_cast<double>(mine.size());
  communicator.all_reduce(std::span(&longest, 1), comm::Reduce::max);
  std::string padded = mine;
  padded.resize(static_cast<std::size_t>(longest) +
                1);  // texts contain no zero, so the first zero ends the text
  std::string all(padded.size() * static_cast<std::size_t>(communicator.size()), '\0');
  communicator.all_gather(std::as_bytes(std::span(padded)), std::as_writable_bytes(std::span(all)));
  std::vector<std::string> texts;
  for (std::size_t at = 0; at < all.size(); at += padded.size()) texts.emplace_back(all.data() + at);
  return texts;
}

std::int64_t sum_of(comm::Communicator& communicator, std::int64_t count) {
  auto sum = static_cast<double>(count);
  communicator.all_reduce(std::span(&sum, 1), comm::Reduce::sum);
  return static_cast<std::int64_t>(sum);
}

}  // namespace paceline::train
