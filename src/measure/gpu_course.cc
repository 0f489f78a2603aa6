#include "measure/gpu_course.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace paceline::measure {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

std::optional<double> most(const std::optional<double>& a, const std::optional<double>& b) {
  if (!a || !b) return a ? a : b;
  return std::max(*a, *b);
}

template <typename Told>
std::optional<double> as_number(const std::optional<Told>& told) {
  return told ? std::optional(static_cast<double>(*told)) : std::nullopt;
}

/// One column of the rows; empty if no row has a number.
template <typename Rows, typename Get>
std::vector<double> column_of(const Rows& rows, Get get) {
  std::vector<double> column;
  for (const auto& row : rows) column.push_back(get(row));
  if (std::all_of(column.begin(), column.end(), [](double one) { return std::isnan(one); })) column.clear();
  return column;
}

bool is_faster_link(const base::PcieLink& one, const base::PcieLink& other) {
  return one.generation * one.width > other.generation * other.width;
}

}  // namespace

void GpuCourse::join(Row& row, const Row& next) {
  row.readings += next.readings;
  for (const auto mean :
       {&Row::utilisation, &Row::memory_utilisation, &Row::watts, &Row::sm_mhz, &Row::memory_mhz}) {
    (row.*mean).sum += (next.*mean).sum;
    (row.*mean).told += (next.*mean).told;
  }
  row.memory_bytes = most(row.memory_bytes, next.memory_bytes);
  row.celsius = most(row.celsius, next.celsius);
}

void GpuCourse::add(const base::GpuReading& reading, base::TimePoint at) {
  const double at_s = base::seconds(at - begin_);
  const auto mean_of = [](const auto& told) {
    return told ? Row::Mean{static_cast<double>(*told), 1} : Row::Mean{};
  };
  const Row row{.at_s = at_s,
                .readings = 1,
                .utilisation = mean_of(reading.utilisation),
                .memory_utilisation = mean_of(reading.memory_utilisation),
                .watts = mean_of(reading.watts),
                .sm_mhz = mean_of(reading.sm_mhz),
                .memory_mhz = mean_of(reading.memory_mhz),
                .memory_bytes = as_number(reading.used_bytes),
                .celsius = as_number(reading.celsius)};
  ++readings_;
  if (!first_s_) first_s_ = at_s;
  last_s_ = at_s;
  if (!rows_.empty() && rows_.back().readings < readings_each_) {
    join(rows_.back(), row);
  } else {
    if (rows_.size() == most_rows_) {
      for (std::size_t i = 0; 2 * i + 1 < rows_.size(); ++i) {
        Row pair = rows_[2 * i];
        join(pair, rows_[2 * i + 1]);
        rows_[i] = pair;
      }
      rows_.resize(most_rows_ / 2);
      readings_each_ *= 2;
    }
    rows_.push_back(row);
  }
  add_energy(reading, at_s);
  if (reading.brakes) {
    ++brakes_told_;
    for (std::size_t i = 0; i < base::kGpuBrakes.size(); ++i)
      if ((*reading.brakes >> i & 1U) != 0) ++braked_[std::string(base::kGpuBrakes[i])];
  }
  if (reading.pcie && (!pcie_ || is_faster_link(*reading.pcie, *pcie_))) pcie_ = reading.pcie;
  add_xids(reading.xids);
  if (reading.processes) add_processes(*reading.processes);
}

void GpuCourse::add_energy(const base::GpuReading& reading, double at_s) {
  if (reading.joules) {
    // The counter went backwards: the driver was reloaded.
    if (last_joules_ && *reading.joules < *last_joules_) has_counter_ = false;
    if (!first_joules_) first_joules_ = reading.joules, first_joules_at_s_ = at_s;
    last_joules_ = reading.joules;
    last_joules_at_s_ = at_s;
  }
  if (reading.watts) {
    if (watts_) trapezoids_j_ += (*watts_ + *reading.watts) / 2 * (at_s - *watts_at_s_);
    if (!watts_) first_watts_at_s_ = at_s;
    watts_ = reading.watts;
    watts_at_s_ = at_s;
  }
}

void GpuCourse::add_processes(const std::vector<base::GpuProcessReading>& processes) {
  ++processes_told_;
  for (const auto& one : processes) {
    auto& known = processes_[one.pid];
    const auto before = known.last.memory_bytes;
    known.last = one;
    if (before && (!one.memory_bytes || *before > *one.memory_bytes)) known.last.memory_bytes = before;
    ++known.seen;
  }
}

GpuRecord GpuCourse::record(const base::GpuIdentity& identity) const {
  const auto text = [](const std::string& told) { return told.empty() ? std::nullopt : std::optional(told); };
  const auto link = [](const std::optional<base::PcieLink>& told) {
    return told ? std::optional(GpuLinkRecord{.generation = told->generation, .width = told->width})
                : std::nullopt;
  };
  GpuRecord record{.index = identity.index,
                   .ranks = {},
                   .name = identity.name,
                   .uuid = text(identity.uuid),
                   .bus_id = text(identity.bus_id),
                   .host = {},
                   .readings = readings_,
                   .watts_limit = identity.watts_limit,
                   .memory_bytes = identity.memory_bytes,
                   .sm_mhz_most = identity.sm_mhz_most,
                   .memory_mhz_most = identity.memory_mhz_most,
                   .pcie = link(pcie_),
                   .pcie_most = link(identity.pcie_most),
                   .nvlinks = identity.nvlinks,
                   .held_back = {},
                   .xids = {},
                   .others = {},
                   .course = {}};
  if (first_s_) record.seconds = *last_s_ - *first_s_;
  // Only if the counter covers all readings, so that energy over seconds is the mean power.
  if (has_counter_ && first_joules_ && record.seconds > 0 && first_joules_at_s_ == *first_s_ &&
      last_joules_at_s_ == *last_s_) {
    record.energy_j = *last_joules_ - *first_joules_;
    record.energy_by = "counter";
  } else if (watts_ && record.seconds > 0 && first_watts_at_s_ == *first_s_ && *watts_at_s_ == *last_s_) {
    record.energy_j = trapezoids_j_;
    record.energy_by = "power";
  }
  if (brakes_told_ > 0) {
    record.held_back.emplace();
    for (const auto& [name, count] : braked_)
      (*record.held_back)[name] = static_cast<double>(count) / static_cast<double>(brakes_told_);
  }
  if (processes_told_ > 0) {
    record.others.emplace();
    for (const auto& [pid, process] : processes_)
      record.others->push_back(
          {.pid = pid,
           .name = process.last.name,
           .memory_bytes = process.last.memory_bytes,
           .share = static_cast<double>(process.seen) / static_cast<double>(processes_told_)});
  }
  if (!xids_.empty()) record.xids = xids_;
  auto& course = record.course;
  course.readings_each = readings_each_;
  const auto mean = [](const Row::Mean& of) { return of.told > 0 ? of.sum / of.told : kNone; };
  for (const auto& row : rows_) course.at_s.push_back(row.at_s);
  course.utilisation = column_of(rows_, [&](const Row& row) { return mean(row.utilisation); });
  course.memory_utilisation = column_of(rows_, [&](const Row& row) { return mean(row.memory_utilisation); });
  course.memory_bytes = column_of(rows_, [](const Row& row) { return row.memory_bytes.value_or(kNone); });
  course.watts = column_of(rows_, [&](const Row& row) { return mean(row.watts); });
  course.sm_mhz = column_of(rows_, [&](const Row& row) { return mean(row.sm_mhz); });
  course.memory_mhz = column_of(rows_, [&](const Row& row) { return mean(row.memory_mhz); });
  course.celsius = column_of(rows_, [](const Row& row) { return row.celsius.value_or(kNone); });
  return record;
}

}  // namespace paceline::measure
