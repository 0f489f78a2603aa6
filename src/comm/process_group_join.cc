#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>

#include <algorithm>
#include <functional>

#include "base/archive.h"
#include "base/error.h"
#include "base/text.h"
#include "comm/process_group.h"

// Joins the processes of a run: connects the failure detector, sets up shared memory of a host, and regroups
// processes for each cell of a study.

namespace paceline::comm {
namespace {

using std::chrono::milliseconds;

/// The other processes wait this much longer than the first for a process that does not connect, since the
/// first knows which one it is.
constexpr milliseconds kForTheFirstWord{5000};

constexpr std::size_t kExchangesBlock = std::size_t{16} << 10;
/// most bytes, since containers have little shared memory
constexpr std::size_t kSlotsOfAll = std::size_t{32} << 20;

std::size_t block_bytes(std::size_t wanted, int processes) {
  const std::size_t share = kSlotsOfAll / 8 / static_cast<std::size_t>(processes) / 4096 * 4096;
  return std::max(std::size_t{4096}, std::min(wanted, share));
}

/// About 20 microseconds of spinning if every process has its own core. If they share cores, spinning would
/// take time from the other process, so the core is yielded instead.
SpinLimits spin_limits_of(int processes, int cores) {
  return processes <= cores ? SpinLimits{.looks = 400} : SpinLimits{.looks = 0, .yields = 50};
}

/// The message of each process before they share memory.
struct JoinMessage {
  std::string host;
  std::string memory;  ///< the name of process 0's memory; empty: none
  cpu_set_t cores{};   ///< the cores that it may use
};
template <typename A>
void fields(A& archive, base::In<A, JoinMessage>& value) {
  base::each_member(archive, value.host, value.memory, value.cores);
}

}  // namespace

void ProcessGroup::connect(const DetectorOptions& options) {
  std::vector<Address> addresses(static_cast<std::size_t>(processes()));
  const auto mine = std::span(addresses).subspan(static_cast<std::size_t>(process()), 1);
  if (process() == 0) {
    detector_ = std::make_unique<FailureDetector>(processes(), options);
    mine.front() = detector_->address();
  } else {
    survivor_probe_ = std::make_unique<SurvivorProbe>(options.interface, options.is_on_this_host);
    mine.front() = survivor_probe_->address();
  }
  // The first process knows who does not come; the others, which wait for it, would blame it.
  const auto until =
      base::Clock::now() + options.connecting + (process() == 0 ? milliseconds(0) : kForTheFirstWord);
  const auto swap = [&](std::span<const Send> sends, std::span<const Receive> receives) {
    const auto missing =
        wire_.swap(Channel::exchanges, sends, receives, [&] { return base::Clock::now() < until; });
    if (!missing.empty())
      base::fail(base::ErrorKind::comm, "{}: process {} did not answer within {} s of its start", name(),
                 fmt::join(missing, ", "), options.connecting.count() / 1000);
  };
  // Gathers at the first process, then sends to all.
  const auto whole = std::as_writable_bytes(std::span(addresses));
  if (process() == 0) {
    std::vector<Send> sends;
    std::vector<Receive> receives;
    for (int other = 1; other < processes(); ++other) {
      const auto place = std::span(addresses).subspan(static_cast<std::size_t>(other), 1);
      receives.push_back({other, std::as_writable_bytes(place)});
      sends.push_back({other, whole});
    }
    swap({}, receives);
    swap(sends, {});
  } else {
    const Send send{0, std::as_bytes(mine)};
    const Receive receive{0, whole};
    swap(std::span(&send, 1), {});
    swap({}, std::span(&receive, 1));
    detector_ = std::make_unique<FailureDetector>(process(), addresses, options);
  }
  detector_->start({.ranks_of = [this](int other) { return ranks_of(other); },
                    .on_failure = [this](const Failure& failure) { take_failure(failure); },
                    .warn =
                        [this](const std::string& text) {
                          if (say_) say_(text);
                        }});
}

bool ProcessGroup::everywhere(bool here) {
  std::vector<char> all(static_cast<std::size_t>(processes()));
  all_gather(std::as_bytes(std::span(&here, 1)), std::as_writable_bytes(std::span(all)));
  return std::count(all.begin(), all.end(), 1) == processes();
}

void ProcessGroup::share_memory() {
  shares_memory_ = true;
  join_memory();
}

void ProcessGroup::join_memory() {
  if (processes() == 1) return;
  const std::size_t block = block_bytes(wanted_block_, processes());
  const std::size_t exchanges_block = block_bytes(kExchangesBlock, processes());
  const std::size_t first = Staged::room(processes(), block);  // of the reductions' stream
  const std::size_t room = first + Staged::room(processes(), exchanges_block);
  JoinMessage mine;
  mine.host = base::host_name();
  ::sched_getaffinity(0, sizeof mine.cores, &mine.cores);
  if (process() == 0) memory_ = SharedMemory::create(room);
  if (memory_) mine.memory = memory_->name();
  const auto messages = gather_values(*this, processes(), mine);
  const bool one_host = std::all_of(messages.begin(), messages.end(),
                                    [&](const JoinMessage& other) { return other.host == mine.host; });
  const std::string& name = messages[0].memory;
  if (one_host && !name.empty() && process() != 0) memory_ = SharedMemory::open(name, room);
  const bool all_have_it = everywhere(one_host && memory_.has_value());
  if (memory_) memory_->remove_name();
  if (!all_have_it) {
    memory_.reset();
    return;
  }
  cpu_set_t cores;
  CPU_ZERO(&cores);
  for (const auto& card : messages) CPU_OR(&cores, &cores, &card.cores);
  const auto limits = spin_limits_of(processes(), CPU_COUNT(&cores));
  reductions_.emplace(memory_->bytes().first(first), process(), processes(), block, limits);
  exchanges_.emplace(memory_->bytes().subspan(first), process(), processes(), exchanges_block, limits);
}

base::Buffer ProcessGroup::memory(std::size_t bytes) {
  common_.reset();
  if (!reductions_ || wire_format_ != WireFormat::fp32 || bytes == 0) return base::Buffer(bytes);
  // All processes must arrive before any creates a name, so that one that is killed while waiting leaves
  // nothing behind.
  barrier();
  auto mine = SharedMemory::create(bytes);
  const auto names = gather_values(*this, processes(), mine ? mine->name() : std::string());
  std::vector<SharedMemory> blocks;
  for (int other = 0; other < processes(); ++other) {
    auto block = other == process() ? std::exchange(mine, std::nullopt)
                                    : SharedMemory::open(names[static_cast<std::size_t>(other)], bytes);
    if (!block) break;
    blocks.push_back(std::move(*block));
  }
  if (!everywhere(blocks.size() == names.size())) return base::Buffer(bytes);
  for (auto& block : blocks) block.remove_name();
  common_ = std::make_shared<const std::vector<SharedMemory>>(std::move(blocks));
  return {(*common_)[static_cast<std::size_t>(process())].bytes(), common_};
}

int ProcessGroup::highest(int mine) {
  const auto own = static_cast<std::byte>(mine);
  std::vector<std::byte> all(static_cast<std::size_t>(wire_.processes()));
  const LazyName what = [] { return std::string("a meeting of all processes"); };
  (void)exchange_all_gather(std::span(&own, 1), all, wire_.process(), wire_.processes(),
                            [&](std::span<const Send> sends, std::span<const Receive> receives) {
                              round(Channel::exchanges, what, sends, receives);
                            });
  return std::to_integer<int>(*std::ranges::max_element(all));
}

int ProcessGroup::regroup(std::span<const int> members, int mine) {
  base::expects(!members.empty() && members.front() == 0 && members.back() < wire_.processes() &&
                    std::adjacent_find(members.begin(), members.end(), std::greater_equal()) == members.end(),
                "members are processes of the run in ascending order, 0 the first");
  if (wire_.processes() == 1) return mine;
  at(0, "the start");
  const int highest_of_all = highest(mine);  // after this no process uses the streams
  detector_->heartbeat().restart_counting();
  common_.reset();
  reductions_.reset();
  exchanges_.reset();
  memory_.reset();
  members_ = static_cast<int>(members.size());
  place_ = -1;
  for (std::size_t place = 0; place < members.size(); ++place) {
    numbers_[place] = members[place];
    if (members[place] == wire_.process()) place_ = static_cast<int>(place);
  }
  if (shares_memory_ && place_ >= 0) join_memory();
  return highest_of_all;
}

}  // namespace paceline::comm
