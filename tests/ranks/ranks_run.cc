/// One process of a test under mpirun: every collective against its closed form or the tree's bits, for
/// counts 0, 1, prime and large, with LOCAL workers in each process.
///
///     mpirun -np P ranks_run FOLDER_OF_THE_MODULES LOCAL [messages]
///
/// With RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT instead of mpirun: through gloo. `messages`: without
/// the memory that the processes share, as between hosts.
///
/// Ends with 0 and one line from process 0, or with 1 and what was wrong.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/rng.h"
#include "base/summation_tree.h"
#include "comm/gloo/load.h"
#include "comm/launch.h"
#include "comm/make.h"
#include "comm/mpi/load.h"

namespace {

using namespace paceline;

std::mutex mutex;
int faults = 0;

template <typename... Args>
void expect(bool holds, fmt::format_string<Args...> format, Args&&... args) {
  if (holds) return;
  const std::lock_guard lock(mutex);
  if (++faults <= 5) std::fprintf(stderr, "%s\n", fmt::format(format, std::forward<Args>(args)...).c_str());
}

/// Each rank's own series of numbers of very different size. Drawing is dear, so the series repeats: with a
/// period that is prime, so that a block of any size in another one's place is seen.
std::vector<std::vector<float>> series;

void draw_series(int world) {
  constexpr std::size_t kPeriod = 65537;
  for (int rank = 0; rank < world; ++rank) {
    base::Rng rng(static_cast<std::uint64_t>(rank) + 1, base::Purpose::test);
    auto& drawn = series.emplace_back(kPeriod);
    for (float& value : drawn) value = (rng.uniform() - 0.5f) * static_cast<float>(1 << rng.below(20));
  }
}

/// What `rank` gives to a collective of `count` numbers: other numbers for another count.
std::vector<float> values_of(int rank, std::size_t count) {
  const auto& drawn = series[static_cast<std::size_t>(rank)];
  std::vector<float> values(count);
  std::size_t from = count % drawn.size();
  for (std::size_t i = 0; i < count; from = 0) {
    const std::size_t part = std::min(count - i, drawn.size() - from);
    std::copy_n(drawn.begin() + static_cast<std::ptrdiff_t>(from), part,
                values.begin() + static_cast<std::ptrdiff_t>(i));
    i += part;
  }
  return values;
}

void check_all_reduce(comm::Communicator& communicator, std::size_t count) {
  const int world = communicator.size();
  std::vector<std::vector<float>> inputs;
  for (int rank = 0; rank < world; ++rank) inputs.push_back(values_of(rank, count));
  std::vector<const float*> parts;
  for (const auto& input : inputs) parts.push_back(input.data());
  std::vector<float> expected(count);
  base::tree_sum<float>(parts, expected.data(), count);
  for (int again = 0; again < 2; ++again) {
    auto values = inputs[static_cast<std::size_t>(communicator.rank())];
    communicator.all_reduce(values)->wait();
    expect(count == 0 || std::memcmp(values.data(), expected.data(), count * sizeof(float)) == 0,
           "rank {}: an all-reduce of {} floats over {} ranks does not have the tree's bits",
           communicator.rank(), count, world);
  }
  std::vector<float> apart(count);
  const auto& given = inputs[static_cast<std::size_t>(communicator.rank())];
  communicator.all_reduce(given, apart)->wait();
  expect(count == 0 || std::memcmp(apart.data(), expected.data(), count * sizeof(float)) == 0,
         "rank {}: an all-reduce of {} floats out of place is wrong", communicator.rank(), count);
}

/// In memory that the processes reach into where they share any.
void check_in_memory(comm::Communicator& communicator, std::size_t count) {
  base::Buffer memory = communicator.memory(count * sizeof(float));
  const auto values = memory.as<float>();
  for (int again = 0; again < 20; ++again) {
    auto apart = values_of(communicator.rank(), count + static_cast<std::size_t>(again));
    apart.resize(count);
    std::copy(apart.begin(), apart.end(), values.begin());
    communicator.all_reduce(values)->wait();
    communicator.all_reduce(apart)->wait();
    expect(std::memcmp(values.data(), apart.data(), values.size_bytes()) == 0,
           "rank {}: an all-reduce of {} floats in memory that was given for it has other bits",
           communicator.rank(), count);
  }
}

/// `count` floats for each rank.
void check_reduce_scatter(comm::Communicator& communicator, std::size_t count) {
  const auto world = static_cast<std::size_t>(communicator.size());
  std::vector<std::vector<float>> inputs;
  for (std::size_t rank = 0; rank < world; ++rank)
    inputs.push_back(values_of(static_cast<int>(rank), world * count));
  std::vector<const float*> parts;
  for (const auto& input : inputs) parts.push_back(input.data());
  std::vector<float> sum(world * count), apart(count);
  base::tree_sum<float>(parts, sum.data(), sum.size());
  const auto begin = static_cast<std::size_t>(communicator.rank()) * count;
  auto values = inputs[static_cast<std::size_t>(communicator.rank())];
  communicator.reduce_scatter(values, apart)->wait();
  const auto place = std::span(values).subspan(begin, count);
  communicator.reduce_scatter(values, place)->wait();
  for (const auto result : {std::span<const float>(apart), std::span<const float>(place)})
    expect(count == 0 || std::memcmp(result.data(), sum.data() + begin, count * sizeof(float)) == 0,
           "rank {}: a reduce-scatter of {} floats each does not have the tree's bits", communicator.rank(),
           count);
}

void check_small(comm::Communicator& communicator, std::size_t count) {
  const int world = communicator.size(), rank = communicator.rank();
  std::vector<double> sum(count, rank), least(count, rank), most(count, rank);
  communicator.all_reduce(sum, comm::Reduce::sum);
  communicator.all_reduce(least, comm::Reduce::min);
  communicator.all_reduce(most, comm::Reduce::max);
  for (std::size_t i = 0; i < count; ++i)
    expect(sum[i] == world * (world - 1) / 2.0 && least[i] == 0 && most[i] == world - 1,
           "rank {}: a reduction of {} doubles is wrong at {}", rank, count, i);
  for (int root = 0; root < world; ++root) {
    std::vector<int> block(count, rank);
    communicator.broadcast(std::as_writable_bytes(std::span(block)), root);
    for (const int value : block)
      expect(value == root, "rank {}: a broadcast from {} brought {}", rank, root, value);
  }
  const std::vector<int> mine(count, rank);
  std::vector<int> all(count * static_cast<std::size_t>(world));
  communicator.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
  for (std::size_t i = 0; i < all.size(); ++i)
    expect(all[i] == static_cast<int>(i / count), "rank {}: an all-gather of {} ints is wrong at {}", rank,
           count, i);
  communicator.barrier();
}

void work(comm::Communicator& communicator) {
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{1009}, std::size_t{2048},
                                  std::size_t{2049}, std::size_t{1'000'003}, std::size_t{8} << 20})
    check_all_reduce(communicator, count);
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{1009}, std::size_t{300'007}})
    check_small(communicator, count);
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{1009}, std::size_t{600'011}})
    check_reduce_scatter(communicator, count);
  for (const std::size_t count : {std::size_t{1}, std::size_t{2049}, std::size_t{1'000'003}})
    check_in_memory(communicator, count);
}

}  // namespace

int main(int count, char** words) {
  if (count < 3 || count > 4) {
    std::fprintf(stderr, "usage: mpirun -np P ranks_run FOLDER LOCAL [messages]\n");
    return 2;
  }
  try {
    const int local = std::atoi(words[2]);
    const auto launch = comm::read_launch([](const char* name) -> const char* { return std::getenv(name); });
    const auto wire = launch.meeting_host.empty() ? comm::mpi::open_wire(launch, words[1])
                                                  : comm::gloo::open_wire(launch, {}, words[1]);
    comm::ProcessGroup processes(*wire, {.ranks_each = local, .shared_memory = count == 3},
                                 [](const std::string& text) { std::fprintf(stderr, "%s\n", text.c_str()); });
    auto communicators = comm::make_local(local, {.across = &processes});
    draw_series(communicators[0]->size());
    std::vector<std::thread> ranks;
    for (auto& communicator : communicators)
      ranks.emplace_back([&] {
        try {
          work(*communicator);
        } catch (const std::exception& error) {
          expect(false, "rank {}: {}", communicator->rank(), error.what());
          communicator->abort(error.what());
        }
      });
    for (auto& rank : ranks) rank.join();
    if (faults == 0 && processes.process() == 0)
      std::printf("%d ranks in %d processes, %s: every collective is right\n", communicators[0]->size(),
                  processes.processes(), communicators[0]->algorithm().c_str());
    communicators.clear();
  } catch (const base::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return faults == 0 ? 0 : 1;
}
