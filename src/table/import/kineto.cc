/// Reads traces of PyTorch's profiler (Kineto): on what a step's device time was spent, for one rank or all
/// ranks of a run.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "table/import/import.h"
#include "table/import/trace_reader.h"

namespace paceline::table {
namespace {

namespace fs = std::filesystem;

struct Collective {
  double begin = 0, end = 0;  ///< us
  std::string group;
  double bytes = 0;  ///< 0: not stated
};

/// A kernel, a call of the host that launched one, or a step of an optimizer.
struct Call {
  Stretch span;
  double number = 0;  ///< of the launch, also beside its kernel; 0: not stated
};

/// One rank's trace: spans only.
struct Trace {
  fs::path file;
  std::optional<double> rank, world;
  double base_s = 0;  ///< UTC of the time 0 of its events; 0: not stated
  std::string device;
  std::vector<Call> kernels;                                   ///< kernels other than collectives
  std::map<std::string, std::vector<Call>> launches, updates;  ///< by process and thread
  std::vector<Stretch> compute, update, copy, next;
  std::vector<std::pair<double, Stretch>> steps;  ///< by their number
  std::vector<Collective> collectives;
  std::vector<Stretch> host_work;  ///< calls of PyTorch's operators and of its backward pass
  std::vector<Collective> host_collectives;
  bool is_of_host = false;  ///< nothing of a device: compute and collectives are the host's
};

/// Decides by the profiler's metadata of the kernel, or by its name. Other tools have shown no communication
/// after kernels were renamed. So if a group of several workers has no collective, the communication is
/// unknown, not zero.
bool is_collective(const TraceEvent& event) {
  if (event.args.contains("Collective name")) return true;
  const auto name = base::lower_case(event.name);
  return name.starts_with("nccl") || name.starts_with("rccl");
}

std::optional<double> fact_number(const TraceFacts& facts, const char* key) {
  const auto number = read_number(text_in(facts, key));
  return number ? std::optional(number->value) : std::nullopt;
}

double argument(const TraceEvent& event, const char* key) { return fact_number(event.args, key).value_or(0); }

double bytes_of_type(const std::string& type) {
  const auto name = base::lower_case(type);
  if (has_any(name, {"bfloat16", "half"}) || name == "float16") return 2;
  if (has_any(name, {"double", "long", "64"})) return 8;
  if (has_any(name, {"float8", "int8", "byte", "char", "bool"})) return 1;
  if (has_any(name, {"int16", "short"})) return 2;
  return has_any(name, {"float", "int"}) ? 4 : 0;
}

void take_event(Trace& trace, const TraceEvent& event) {
  if (event.phase != "X" || !event.has_begin || !(event.length_us >= 0)) return;
  const Stretch span{event.begin_us, event.begin_us + event.length_us};
  const auto category = base::lower_case(event.category);
  if (category == "kernel") {
    if (!is_collective(event)) {
      trace.kernels.push_back({span, argument(event, "correlation")});
      return;
    }
    trace.collectives.push_back(
        {span.begin, span.end, text_in(event.args, "Process Group Name"),
         argument(event, "In msg nelems") * bytes_of_type(text_in(event.args, "dtype"))});
  } else if (category == "cuda_runtime" || category == "cuda_driver" || category == "hip_runtime") {
    if (const double number = argument(event, "correlation"); number > 0)
      trace.launches[event.process + ' ' + event.thread].push_back({span, number});
  } else if (event.name.starts_with("Optimizer.step#") && category.find("gpu") == std::string::npos) {
    trace.updates[event.process + ' ' + event.thread].push_back({span});
  } else if (category == "gpu_memcpy" || category == "gpu_memset") {
    trace.copy.push_back(span);
  } else if (event.name.starts_with("ProfilerStep#") && category.find("gpu") == std::string::npos) {
    const auto number = read_number(std::string_view(event.name).substr(13));
    trace.steps.emplace_back(number ? number->value : static_cast<double>(trace.steps.size()), span);
  } else if (event.name.starts_with("gloo:")) {
    trace.host_collectives.push_back({span.begin, span.end, "", 0});
  } else if (event.name.starts_with("aten::") || event.name.starts_with("autograd::engine")) {
    trace.host_work.push_back(span);
  } else if (event.name.starts_with("enumerate(DataLoader)") &&
             event.name.find("__next__") != std::string::npos) {
    trace.next.push_back(span);
  }
}

/// Separates the kernels that the optimizer's step launched, by the number of the call.
void split_update(Trace& trace) {
  std::vector<double> of_update;
  for (auto& [thread, steps] : trace.updates) {
    std::vector<Stretch> spans;
    for (const auto& step : steps) spans.push_back(step.span);
    const auto all = united(std::move(spans));
    for (const auto& launch : trace.launches[thread]) {
      const auto after = std::ranges::upper_bound(all, launch.span.begin, {}, &Stretch::begin);
      if (after != all.begin() && std::prev(after)->end > launch.span.begin)
        of_update.push_back(launch.number);
    }
  }
  trace.launches.clear();
  std::ranges::sort(of_update);
  for (const auto& kernel : trace.kernels)
    (kernel.number > 0 && std::ranges::binary_search(of_update, kernel.number) ? trace.update : trace.compute)
        .push_back(kernel.span);
  trace.kernels = {};
}

Trace read_one(const fs::path& file) {
  Trace trace{.file = file};
  const auto facts = read_trace(file, false, [&](TraceEvent& event) { take_event(trace, event); });
  trace.rank = fact_number(facts, "distributedInfo.rank");
  trace.world = fact_number(facts, "distributedInfo.world_size");
  trace.base_s = fact_number(facts, "baseTimeNanoseconds").value_or(0) * 1e-9;
  trace.device = text_in(facts, "deviceProperties.name");
  split_update(trace);
  if (trace.compute.empty() && trace.update.empty() && trace.collectives.empty() && trace.copy.empty() &&
      !trace.host_collectives.empty()) {
    trace.is_of_host = true;
    trace.compute = std::move(trace.host_work);
    trace.collectives = std::move(trace.host_collectives);
  }
  trace.host_work = {};
  std::ranges::sort(trace.steps, {}, [](const auto& step) { return step.second.begin; });
  std::ranges::sort(trace.collectives, {}, &Collective::begin);
  return trace;
}

/// The stretches of time that are measured: from the begin of each step to the begin of the next.
std::vector<Stretch> windows_of(const Trace& trace) {
  std::vector<Stretch> windows;
  for (std::size_t i = 0; i < trace.steps.size(); ++i) {
    const auto& step = trace.steps[i].second;
    const double end = i + 1 < trace.steps.size() ? trace.steps[i + 1].second.begin : step.end;
    if (end > step.begin) windows.push_back({step.begin, end});
  }
  if (!windows.empty()) return windows;
  Stretch all{1e300, -1e300};
  const auto widen = [&](double begin, double end) {
    all = {std::min(all.begin, begin), std::max(all.end, end)};
  };
  for (const auto* const spans : {&trace.compute, &trace.update, &trace.copy})
    for (const auto& one : *spans) widen(one.begin, one.end);
  for (const auto& one : trace.collectives) widen(one.begin, one.end);
  if (all.end > all.begin) windows.push_back(all);
  return windows;
}

struct Parts {
  double time = 0, compute = 0, update = 0, exposed = 0, copy = 0, wait = 0, bytes = 0, sd = 0;
};

/// Means over the windows, in microseconds.
Parts parts_of(const Trace& trace, const std::vector<Stretch>& windows) {
  std::vector<Stretch> reducing;
  for (const auto& one : trace.collectives) reducing.push_back({one.begin, one.end});
  const auto compute = united(trace.compute), collectives = united(reducing);
  const auto update = without(united(trace.update), compute);
  auto busy = trace.compute;
  busy.insert(busy.end(), trace.update.begin(), trace.update.end());
  const auto exposed = without(collectives, united(busy));
  busy.insert(busy.end(), reducing.begin(), reducing.end());
  const auto working = united(busy);
  const auto copies = without(united(trace.copy), working);
  busy.insert(busy.end(), trace.copy.begin(), trace.copy.end());
  const auto waits = without(united(trace.next), united(busy));
  Parts sum;
  std::vector<double> times;
  const auto n = static_cast<double>(windows.size());
  for (const auto& [begin, end] : windows) {
    times.push_back(end - begin);
    sum.time += (end - begin) / n;
    sum.compute += length(clipped(compute, begin, end)) / n;
    sum.update += length(clipped(update, begin, end)) / n;
    sum.exposed += length(clipped(exposed, begin, end)) / n;
    sum.copy += length(clipped(copies, begin, end)) / n;
    sum.wait += length(clipped(waits, begin, end)) / n;
  }
  for (const auto& one : trace.collectives)
    if (one.begin >= windows.front().begin && one.begin < windows.back().end) sum.bytes += one.bytes / n;
  sum.sd = scatter_of(times).sd;
  return sum;
}

Row row_of_trace(const Trace& trace, const std::vector<Stretch>& windows, Table& table) {
  constexpr double kMicro = 1e-6;
  const auto parts = parts_of(trace, windows);
  Row row;
  const bool has_steps = !trace.steps.empty();
  row.set("run", trace.rank ? fmt::format("rank {:g}", *trace.rank) : trace.file.filename().string());
  row.set("program", "PyTorch");
  if (!trace.device.empty()) row.set("device", trace.device);
  if (trace.world && *trace.world >= 1) row.set("workers", std::round(*trace.world));
  row.set("time_s", parts.time * kMicro);
  row.set("time_of", has_steps ? "step" : "run");
  row.set("statistic", has_steps && windows.size() > 1 ? "mean" : "single");
  if (windows.size() > 1) {
    row.set("repeats", static_cast<double>(windows.size()));
    row.set("spread_s", parts.sd * kMicro);
    row.set("spread_is", "sd");
  }
  row.set("clock", trace.is_of_host ? "host" : "device");
  double known = 0;
  const auto set = [&](Column column, bool is_known, double us) {
    if (!is_known) return row.set(column, "unknown");
    row.set(column, us * kMicro);
    known += us;
  };
  // If the device was not recorded, its copies and idle times are unknown.
  const bool has_device =
      !trace.compute.empty() || !trace.update.empty() || !trace.collectives.empty() || !trace.copy.empty();
  const bool is_alone = trace.world && *trace.world == 1;
  set("compute_s", !trace.compute.empty(), parts.compute);
  set("communication_s", !trace.collectives.empty() || is_alone, parts.exposed);
  set("update_s", !trace.update.empty(), parts.update);
  set("data_wait_s", !trace.next.empty() && has_device, parts.wait);
  set("other_s", has_device && !trace.is_of_host, parts.copy);
  row.set("not_attributed_s", std::max(0.0, parts.time - known) * kMicro);
  if (!trace.collectives.empty()) row.set("communication_is", "exposed");
  if (parts.bytes > 0) row.set("message_bytes", std::round(parts.bytes));
  if (!has_device)
    table.notes.push_back(
        fmt::format("{}: the trace holds no work of a device: only the times of the steps "
                    "are known",
                    row.text("run")));
  if (trace.collectives.empty() && !is_alone && has_device)
    table.notes.push_back(fmt::format(
        "{}: no kernel is known to be a collective{}: the communication is not known, and may be counted as "
        "compute",
        row.text("run"), trace.world ? fmt::format(" although {:g} workers are named", *trace.world) : ""));
  return row;
}

/// Splits communication into transfer and waiting, if all ranks are present. Of the k-th collective of a
/// group the shortest duration is transfer; the excess on other ranks is waiting for a later rank.
void split_waiting(const std::vector<Trace>& traces, const std::vector<std::vector<Stretch>>& windows,
                   Table& table) {
  std::vector<std::map<std::string, std::vector<const Collective*>>> by_group(traces.size());
  for (std::size_t r = 0; r < traces.size(); ++r)
    for (const auto& one : traces[r].collectives) by_group[r][one.group].push_back(&one);
  for (const auto& [group, first] : by_group.front())
    for (const auto& other : by_group) {
      const auto found = other.find(group);
      if (found != other.end() && found->second.size() == first.size()) continue;
      table.notes.push_back(
          "the ranks do not have the same collectives, so transfer and waiting cannot be told apart");
      return;
    }
  for (std::size_t r = 0; r < traces.size(); ++r) {
    double transfer = 0, all = 0;
    for (const auto& [group, mine] : by_group[r]) {
      for (std::size_t k = 0; k < mine.size(); ++k) {
        if (mine[k]->begin < windows[r].front().begin || mine[k]->begin >= windows[r].back().end) continue;
        double shortest = mine[k]->end - mine[k]->begin;
        all += shortest;
        for (const auto& other : by_group) {
          const auto found = other.find(group);
          if (found != other.end() && k < found->second.size())
            shortest = std::min(shortest, found->second[k]->end - found->second[k]->begin);
        }
        transfer += shortest;
      }
    }
    const double n = static_cast<double>(windows[r].size()) * 1e6;
    table.rows[r].set("transfer_s", transfer / n);
    table.rows[r].set("late_peer_s", (all - transfer) / n);
  }
}

/// The files of each rank that is named.
std::map<double, std::vector<std::string>> files_of_ranks(const std::vector<Trace>& traces) {
  std::map<double, std::vector<std::string>> files;
  for (const auto& trace : traces)
    if (trace.rank) files[*trace.rank].push_back(trace.file.filename().string());
  return files;
}

/// "5 to 9": the numbers of its steps; "" if they have none.
std::string steps_of(const Trace& trace) {
  return trace.steps.empty()
             ? ""
             : fmt::format("{:g} to {:g}", trace.steps.front().first, trace.steps.back().first);
}

/// Whether the windows of two traces are so far apart that no difference of the hosts' clocks explains it.
bool are_apart(const Trace& a, const std::vector<Stretch>& of_a, const Trace& b,
               const std::vector<Stretch>& of_b) {
  constexpr double kClocks_s = 60, kYear2001_s = 1e9;
  const auto begin = [](const Trace& trace, double us) { return trace.base_s + us * 1e-6; };
  if (begin(a, of_a.front().begin) < kYear2001_s || begin(b, of_b.front().begin) < kYear2001_s) return false;
  return begin(a, of_a.front().begin) > begin(b, of_b.back().end) + kClocks_s ||
         begin(b, of_b.front().begin) > begin(a, of_a.back().end) + kClocks_s;
}

/// Why several traces are not one window of all ranks of a run; "" if they are.
std::string why_not_of_one_run(const std::vector<Trace>& traces,
                               const std::vector<std::vector<Stretch>>& windows) {
  const auto& first = traces.front();
  if (!first.world) return "the traces do not say how many workers there are";
  for (std::size_t r = 0; r < traces.size(); ++r) {
    const auto& one = traces[r];
    const auto name = one.file.filename().string();
    if (!one.rank) return fmt::format("{} does not say its rank", name);
    if (one.world != first.world)
      return fmt::format("the traces are of different runs: they name {:g} and {:g} workers", *first.world,
                         one.world.value_or(0));
    if (steps_of(one) != steps_of(first))
      return fmt::format("the traces are of different steps: {} of rank {:g}, but {} of rank {:g}",
                         steps_of(first), *first.rank, steps_of(one), *one.rank);
    if (are_apart(first, windows.front(), one, windows[r]))
      return fmt::format("{} was not traced at the time of {}: they are of different runs or windows", name,
                         first.file.filename().string());
  }
  const auto files = files_of_ranks(traces);
  std::string said;
  for (const auto& [rank, names] : files)
    if (names.size() > 1)
      said += fmt::format("{}rank {:g} occurs {} times ({}, {})", said.empty() ? "" : "; ", rank,
                          names.size(), names[0], names[1]);
  for (double rank = 0; rank < *first.world; ++rank)
    if (!files.contains(rank))
      return fmt::format("{}{}rank {:g} of {:g} is missing", said, said.empty() ? "" : "; ", rank,
                         *first.world);
  return said;
}

/// Rows of one rank are windows of it, and say which.
void number_windows(const std::vector<Trace>& traces, Table& table) {
  const auto files = files_of_ranks(traces);
  std::map<double, int> times;
  for (std::size_t r = 0; r < traces.size(); ++r)
    if (traces[r].rank && files.at(*traces[r].rank).size() > 1)
      table.rows[r].set("repeat", ++times[*traces[r].rank]);
}

Table read_kineto(std::span<const fs::path> files, const GivenFacts&) {
  std::vector<Trace> traces;
  for (const auto& file : files) traces.push_back(read_one(file));
  std::ranges::stable_sort(traces, {}, [](const Trace& one) { return one.rank.value_or(0); });
  Table table{.where = files.front().string()};
  std::vector<std::vector<Stretch>> windows;
  for (const auto& trace : traces) {
    windows.push_back(windows_of(trace));
    if (windows.back().empty())
      base::fail(base::ErrorKind::data,
                 "{}: the trace holds neither steps nor kernels; was the device "
                 "profiled?",
                 trace.file.string());
    table.rows.push_back(row_of_trace(trace, windows.back(), table));
  }
  number_windows(traces, table);
  const auto why_not = traces.size() > 1 ? why_not_of_one_run(traces, windows) : "";
  if (!why_not.empty()) table.notes.push_back(why_not);
  if (traces.size() > 1 && why_not.empty())
    split_waiting(traces, windows, table);
  else if (std::ranges::any_of(traces, [](const Trace& one) { return !one.collectives.empty(); }))
    table.notes.push_back(
        "exposed communication is transfer or waiting: only the traces of all ranks together tell which");
  table.notes.push_back("profiling costs time itself: compare shares, and take times from a run without it");
  if (std::ranges::any_of(traces, [](const Trace& one) { return one.next.empty(); }))
    table.notes.push_back("the trace has no DataLoader: the wait for data is not known");
  if (std::ranges::any_of(table.rows, [](const Row& row) { return row.is_unknown("update_s"); }))
    table.notes.push_back(
        "no kernel is known to be the optimizer's: an update, if there is one, is counted as compute");
  return table;
}

bool is_kineto(std::string_view head) {
  // "CPU functions" are of a profiler that was built without Kineto.
  return has_any(head, {"\"schemaVersion\"", "\"deviceProperties\"", "\"CPU functions\""}) ||
         (has_any(head, {"\"traceEvents\""}) && !has_any(head, {"paceline"}));
}

}  // namespace

Importer kineto() {
  return {.name = "PyTorch profiler trace", .is_it = is_kineto, .read = read_kineto, .joins_files = true};
}

}  // namespace paceline::table
