#include "comm/probe.h"

#include <span>

#include "base/buffer.h"
#include "base/clock.h"

namespace paceline::comm {
namespace {

// Small whole numbers: their sums are exact in any order, so a wrong element is wrong beyond doubt. The
// period is no divisor of a segment or block, so a part in the wrong place shows.
constexpr std::size_t kPeriod = 13;

float value_of(std::size_t i, int rank) { return static_cast<float>(i % kPeriod) + static_cast<float>(rank); }

void fill(std::span<float> values, int rank) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = value_of(i, rank);
}

/// Elements [begin, begin + values.size()) of the sum over `ranks`.
bool holds_sum(std::span<const float> values, int ranks, std::size_t begin = 0) {
  const auto n = static_cast<float>(ranks);
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] != n * static_cast<float>((begin + i) % kPeriod) + n * (n - 1) / 2) return false;
  return true;
}

bool holds_values_of(std::span<const float> values, int rank) {
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] != value_of(i, rank)) return false;
  return true;
}

/// One collective with its buffers: prepared, run, checked. The whole is what all ranks have together, a part
/// what one of them has of it (reduce_scatter: gets, all_gather: gives).
class Run {
 public:
  Run(Communicator& communicator, Trial trial, std::size_t count)
      : communicator_(communicator),
        trial_(trial),
        ranks_(static_cast<std::size_t>(communicator.size())),
        part_(has_parts() ? count / ranks_ : count),
        whole_((has_parts() ? part_ * ranks_ : count) * sizeof(float)),
        apart_(trial.in_place ? 0 : part_ * sizeof(float)) {}

  [[nodiscard]] std::size_t bytes() { return whole().size_bytes(); }

  void prepare() {
    const int rank = communicator_.rank();
    const bool gathers = trial_.collective == Collective::all_gather;
    for (float& value : gathers ? whole() : apart_.as<float>()) value = -1;
    fill(gathers ? mine() : whole(), rank);
  }
  void run() {
    switch (trial_.collective) {
      case Collective::all_reduce:
        communicator_.all_reduce(whole(), mine())->wait();
        return;
      case Collective::reduce_scatter:
        communicator_.reduce_scatter(whole(), mine())->wait();
        return;
      case Collective::broadcast:
        communicator_.broadcast(std::as_writable_bytes(whole()), 0);
        return;
      case Collective::all_gather:
        communicator_.all_gather(std::as_bytes(mine()), std::as_writable_bytes(whole()));
        return;
    }
  }
  [[nodiscard]] bool is_correct() {
    const int rank = communicator_.rank();
    const auto given = trial_.collective == Collective::all_gather ? mine() : whole();
    if (!trial_.in_place && !holds_values_of(given, rank)) return false;
    switch (trial_.collective) {
      case Collective::all_reduce:
        return holds_sum(mine(), communicator_.size());
      case Collective::reduce_scatter:
        return holds_sum(mine(), communicator_.size(), static_cast<std::size_t>(rank) * part_);
      case Collective::broadcast:
        return holds_values_of(whole(), 0);
      case Collective::all_gather:
        break;
    }
    for (std::size_t other = 0; other < ranks_; ++other)
      if (!holds_values_of(whole().subspan(other * part_, part_), static_cast<int>(other))) return false;
    return true;
  }

 private:
  [[nodiscard]] bool has_parts() const {
    return trial_.collective == Collective::all_gather || trial_.collective == Collective::reduce_scatter;
  }
  [[nodiscard]] std::span<float> whole() { return whole_.as<float>(); }
  /// This rank's part, which is all of it where there are none.
  [[nodiscard]] std::span<float> mine() {
    if (!trial_.in_place) return apart_.as<float>();
    const std::size_t begin = has_parts() ? static_cast<std::size_t>(communicator_.rank()) * part_ : 0;
    return whole().subspan(begin, part_);
  }

  Communicator& communicator_;
  const Trial trial_;
  std::size_t ranks_;
  std::size_t part_;  ///< floats
  base::Buffer whole_, apart_;
};

}  // namespace

std::string_view name(Collective collective) {
  switch (collective) {
    case Collective::all_reduce:
      return "all_reduce";
    case Collective::reduce_scatter:
      return "reduce_scatter";
    case Collective::all_gather:
      return "all_gather";
    case Collective::broadcast:
      return "broadcast";
  }
  return "?";
}

Probe probe(Communicator& communicator, Trial trial, std::size_t count, int warmup, int repeats) {
  Run one(communicator, trial, count);
  Probe probe{.bytes = one.bytes(), .seconds = {}, .correct = true};
  double wrong = 0;
  for (int i = 0; i < warmup + repeats; ++i) {
    one.prepare();
    communicator.barrier();
    const auto begin = base::Clock::now();
    one.run();
    double seconds = base::seconds_since(begin);
    if (!one.is_correct()) wrong = 1;
    communicator.all_reduce(std::span(&seconds, 1), Reduce::max);
    if (i >= warmup) probe.seconds.push_back(seconds);
  }
  communicator.all_reduce(std::span(&wrong, 1), Reduce::max);
  probe.correct = wrong == 0;
  return probe;
}

Probe probe_all_reduce(Communicator& communicator, std::size_t count, int warmup, int repeats) {
  return probe(communicator, {Collective::all_reduce, true}, count, warmup, repeats);
}

}  // namespace paceline::comm
