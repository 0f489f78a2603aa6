#include "comm/probe.h"

#include <span>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/word_of.h"

namespace paceline::comm {
namespace {

// Small integers, whose sums are exact in any order, so that a wrong element is certainly wrong. The period
// divides no segment or block, so that misplaced parts are detected.
constexpr std::size_t kPeriod = 13;

float value_of(std::size_t i, int rank) { return static_cast<float>(i % kPeriod) + static_cast<float>(rank); }

void fill(std::span<float> values, int rank) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = value_of(i, rank);
}

/// Whether `values` are elements [begin, begin + values.size()) of the sum over `ranks`.
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

/// Prepares, runs and checks one collective with its arrays. The whole is the array of all ranks; a part is
/// what one rank receives (reduce_scatter) or gives (all_gather).
class Run {
 public:
  Run(Communicator& communicator, Trial trial, std::size_t count, const ProbeArrays& arrays)
      : communicator_(communicator),
        trial_(trial),
        ranks_(static_cast<std::size_t>(communicator.size())),
        part_(has_parts() ? count / ranks_ : count),
        whole_(arrays.whole.subarray(0, has_parts() ? part_ * ranks_ : count)),
        mine_(trial.in_place
                  ? whole_.subarray(has_parts() ? static_cast<std::size_t>(communicator.rank()) * part_ : 0,
                                    part_)
                  : arrays.apart.subarray(0, part_)) {}

  [[nodiscard]] std::size_t bytes() const { return whole_.bytes(); }

  void prepare() {
    const int rank = communicator_.rank();
    const bool gathers = trial_.collective == Collective::all_gather;
    if (!trial_.in_place || gathers) {
      const base::Array wiped = gathers ? whole_ : mine_;
      wiped.memory->fill(wiped, -1);
    }
    const Values given(gathers ? mine_ : whole_);
    fill(given.values(), rank);
    given.write();
  }
  void run() {
    const auto pending = begin();
    pending->wait();
    (void)pending->timing();  // a device may still be computing
  }
  [[nodiscard]] bool is_correct() {
    const int rank = communicator_.rank();
    const Values mine(mine_), whole(whole_);
    mine.read();
    whole.read();
    const auto given = trial_.collective == Collective::all_gather ? mine.values() : whole.values();
    if (!trial_.in_place && !holds_values_of(given, rank)) return false;
    switch (trial_.collective) {
      case Collective::all_reduce:
        return holds_sum(mine.values(), communicator_.size());
      case Collective::reduce_scatter:
        return holds_sum(mine.values(), communicator_.size(), static_cast<std::size_t>(rank) * part_);
      case Collective::broadcast:
        return holds_values_of(whole.values(), 0);
      case Collective::all_gather:
        break;
    }
    for (std::size_t other = 0; other < ranks_; ++other)
      if (!holds_values_of(whole.values().subspan(other * part_, part_), static_cast<int>(other)))
        return false;
    return true;
  }

 private:
  /// An array's values on the host: the array itself, or a copy.
  class Values {
   public:
    explicit Values(base::Array array)
        : array_(array),
          copy_(is_host() ? 0 : array.bytes()),
          values_(is_host() ? array.host() : copy_.as<float>()) {}
    [[nodiscard]] std::span<float> values() const { return values_; }
    void read() const {
      if (!is_host()) array_.memory->read(array_, values_);
    }
    void write() const {
      if (!is_host()) array_.memory->write(values_, array_);
    }

   private:
    [[nodiscard]] bool is_host() const { return array_.memory->is_host(); }
    const base::Array array_;
    base::Buffer copy_;
    const std::span<float> values_;
  };

  [[nodiscard]] std::unique_ptr<Pending> begin() {
    switch (trial_.collective) {
      case Collective::all_reduce:
        return communicator_.all_reduce(whole_, mine_);
      case Collective::reduce_scatter:
        return communicator_.reduce_scatter(whole_, mine_);
      case Collective::broadcast:
        return communicator_.broadcast(whole_, 0);
      case Collective::all_gather:
        break;
    }
    return communicator_.all_gather(mine_, whole_);
  }
  [[nodiscard]] bool has_parts() const {
    return trial_.collective == Collective::all_gather || trial_.collective == Collective::reduce_scatter;
  }

  Communicator& communicator_;
  const Trial trial_;
  std::size_t ranks_;
  std::size_t part_;  ///< floats
  const base::Array whole_;
  const base::Array mine_;  ///< this rank's part; the whole array for collectives without parts
};

}  // namespace

std::string_view name(Collective collective) {
  return base::word_of<Collective::broadcast>(collective,
                                              {"all_reduce", "reduce_scatter", "all_gather", "broadcast"});
}

Probe probe(Communicator& communicator, Trial trial, std::size_t count, int warmup, int repeats) {
  base::Buffer whole(count * sizeof(float)), apart(trial.in_place ? 0 : count * sizeof(float));
  return probe(communicator, trial, count, warmup, repeats,
               {.whole = base::host_array(whole.as<float>()), .apart = base::host_array(apart.as<float>())});
}

Probe probe(Communicator& communicator, Trial trial, std::size_t count, int warmup, int repeats,
            const ProbeArrays& arrays) {
  Run one(communicator, trial, count, arrays);
  Probe probe{.bytes = one.bytes()};
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

}  // namespace paceline::comm
