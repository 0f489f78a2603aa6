/// Reads Horovod's timeline: when each rank was ready for a tensor, and when it was reduced. It is one file,
/// written by rank 0, and may be cut off.

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "table/import/import.h"
#include "table/import/trace_reader.h"

namespace paceline::table {
namespace {

/// What happened to one tensor.
struct Tensor {
  std::vector<std::pair<std::string, double>> open;  ///< operations that have begun and not ended
  std::vector<double> begins;                        ///< when its negotiations began
  std::vector<double> ticks;  ///< times at which a rank became ready in the present negotiation
  double bytes = 0;
};

struct Timeline {
  std::map<std::string, Tensor> tensors;  ///< by pid
  std::vector<Stretch> transfer, late;
  int ranks = 0;
  std::map<int, int> last;  ///< how often each rank was the last to become ready
  int last_of_present = -1;
  double begin = 1e300, end = -1e300;
};

double bytes_of(const TraceEvent& event) {
  const auto type = text_in(event.args, "dtype"), shape = text_in(event.args, "shape");
  if (type.empty() || shape.empty()) return 0;
  double product = has_any(type, {"64"}) ? 8 : has_any(type, {"16"}) ? 2 : has_any(type, {"8"}) ? 1 : 4;
  std::string number;
  for (const char one : shape + ",") {
    if (one >= '0' && one <= '9')
      number += one;
    else if (!number.empty()) {
      product *= read_number(number).value_or(Number{1}).value;
      number.clear();
    }
  }
  return std::isfinite(product) ? product : 0;
}

bool moves_bytes(const std::string& activity) {
  return activity.find("_ALLREDUCE") != std::string::npos && activity.find("NEGOTIATE") == std::string::npos;
}

void end_of(Timeline& timeline, Tensor& tensor, const TraceEvent& event) {
  if (tensor.open.empty()) return;
  const auto [activity, begin] = tensor.open.back();
  tensor.open.pop_back();
  if (moves_bytes(activity)) timeline.transfer.push_back({begin, event.begin_us});
  if (activity.starts_with("NEGOTIATE") && tensor.ticks.size() > 1) {
    const auto [first, last] = std::ranges::minmax(tensor.ticks);
    timeline.late.push_back({first, last});
  }
  if (const double bytes = bytes_of(event); bytes > 0) tensor.bytes = bytes;
}

void take(Timeline& timeline, const TraceEvent& event) {
  constexpr int kManyRanks = 1 << 20;
  if (event.phase == "M" || !event.has_begin) return;
  auto& tensor = timeline.tensors[event.process];
  timeline.begin = std::min(timeline.begin, event.begin_us);
  timeline.end = std::max(timeline.end, event.begin_us + std::max(0.0, event.length_us));
  if (event.phase == "B") {
    if (event.name.starts_with("NEGOTIATE")) {
      tensor.begins.push_back(event.begin_us);
      tensor.ticks.clear();
    }
    tensor.open.emplace_back(event.name, event.begin_us);
  } else if (event.phase == "E") {
    end_of(timeline, tensor, event);
  } else if (event.phase == "X") {
    const auto rank = read_number(event.name);
    if (!rank || rank->value < 0 || rank->value >= kManyRanks || rank->value != std::round(rank->value))
      return;
    tensor.ticks.push_back(event.begin_us);
    timeline.ranks = std::max(timeline.ranks, static_cast<int>(rank->value) + 1);
  }
}

Table read_horovod(std::span<const std::filesystem::path> files, const GivenFacts&) {
  Timeline timeline;
  (void)read_trace(files.front(), true, [&](TraceEvent& event) { take(timeline, event); });
  Table table{.where = files.front().string()};
  const Tensor* clock = nullptr;  // the tensor that was reduced most often marks the steps
  double bytes = 0;
  for (const auto& [pid, tensor] : timeline.tensors) {
    bytes += tensor.bytes;
    if (clock == nullptr || tensor.begins.size() > clock->begins.size()) clock = &tensor;
  }
  if (clock == nullptr || clock->begins.size() < 2)
    base::fail(
        base::ErrorKind::data,
        "{}: no tensor is reduced twice in it, so no step can be measured from begin to end; was the run "
        "ended early?",
        table.where);
  std::vector<double> times;
  for (std::size_t k = 1; k < clock->begins.size(); ++k)
    times.push_back(clock->begins[k] - clock->begins[k - 1]);
  const double begin = clock->begins.front(), end = clock->begins.back();
  const double n = static_cast<double>(times.size()), mean = (end - begin) / n;
  if (!(mean > 0))
    base::fail(base::ErrorKind::data, "{}: its steps take no time; is the file complete?", table.where);
  Row row;
  row.set("run", "rank 0");
  row.set("program", "Horovod");
  if (timeline.ranks > 0) row.set("workers", timeline.ranks);
  row.set("time_s", mean * 1e-6);
  row.set("time_of", "step");
  row.set("statistic", "mean");
  row.set("repeats", n);
  if (times.size() > 1) {
    row.set("spread_s", scatter_of(times).sd * 1e-6);
    row.set("spread_is", "sd");
  }
  const auto per_step = [&](const std::vector<Stretch>& spans) {
    return length(clipped(united(spans), begin, end)) / n * 1e-6;
  };
  for (const Column column : {Column("communication_s"), Column("transfer_s"), Column("late_peer_s"),
                              Column("compute_s"), Column("data_wait_s"), Column("not_attributed_s")})
    row.set(column, "unknown");
  if (!timeline.transfer.empty()) {
    row.set("communication_s", per_step(timeline.transfer));
    row.set("transfer_s", per_step(timeline.transfer));
    row.set("communication_is", "total");
  }
  if (timeline.ranks > 1 && !timeline.late.empty()) row.set("late_peer_s", per_step(timeline.late));
  if (bytes > 0) row.set("message_bytes", bytes);
  table.rows.push_back(std::move(row));
  table.notes.push_back(
      "a timeline says when tensors were reduced, not what the step computed: compute, data, and how much of the "
      "communication is hidden are not known");
  return table;
}

bool is_horovod(std::string_view head) {
  const auto first = head.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && head[first] == '[' &&
         (head.find("process_name") != std::string_view::npos ||
          head.find("NEGOTIATE_") != std::string_view::npos);
}

}  // namespace

Importer horovod_timeline() {
  return {.name = "Horovod timeline", .is_it = is_horovod, .read = read_horovod};
}

}  // namespace paceline::table
