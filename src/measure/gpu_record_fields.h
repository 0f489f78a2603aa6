#pragma once

/// The keys of a record's part about GPUs, as measure/record_fields.h lists those of the rest.

#include "measure/gpu_record.h"
#include "measure/gpu_watch.h"
#include "measure/record_fields.h"

namespace paceline::measure {

template <typename A>
void fields(A& archive, In<A, GpuProcessRecord>& value) {
  archive("pid", value.pid);
  archive("name", value.name);
  archive("memory_bytes", value.memory_bytes);
  archive("share", value.share);
}

template <typename A>
void fields(A& archive, In<A, GpuCourseRecord>& value) {
  archive("readings_each", value.readings_each);
  archive("at_s", value.at_s);
  archive("utilisation", value.utilisation);
  archive("memory_utilisation", value.memory_utilisation);
  archive("memory_bytes", value.memory_bytes);
  archive("watts", value.watts);
  archive("sm_mhz", value.sm_mhz);
  archive("memory_mhz", value.memory_mhz);
  archive("celsius", value.celsius);
}

template <typename A>
void fields(A& archive, In<A, GpuRecord>& value) {
  archive("index", value.index);
  archive("ranks", value.ranks);
  archive("name", value.name);
  where_present(archive, "uuid", value.uuid);
  where_present(archive, "bus_id", value.bus_id);
  where_present(archive, "host", value.host);
  archive("readings", value.readings);
  archive("seconds", value.seconds);
  where_present(archive, "energy_j", value.energy_j);
  where_present(archive, "energy_by", value.energy_by);
  where_present(archive, "watts_limit", value.watts_limit);
  where_present(archive, "memory_bytes", value.memory_bytes);
  where_present(archive, "sm_mhz_most", value.sm_mhz_most);
  where_present(archive, "memory_mhz_most", value.memory_mhz_most);
  where_present(archive, "pcie", value.pcie);
  where_present(archive, "pcie_most", value.pcie_most);
  where_present(archive, "nvlinks", value.nvlinks);
  where_present(archive, "held_back", value.held_back);
  where_present(archive, "xids", value.xids);
  where_present(archive, "others", value.others);
  archive("course", value.course);
}

/// Not in records: processes send it to one another.
template <typename A>
void fields(A& archive, In<A, GpuReport>& value) {
  base::each_member(archive, value.pids, value.gpus, value.failures);
}

}  // namespace paceline::measure
