#pragma once

/// `paceline doctor`: this machine and this build, what they reach, and what is not there.

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace paceline::cli {

class Session;
struct RankOnGpu;

struct DoctorOptions {
  std::string kernels_model;      ///< not empty: lists which implementation each op of this model gets
  std::int64_t local_batch = 32;  ///< for that list
  std::string device = "cpu";
  std::string precision = "auto";           ///< "fp32", "bf16" or "auto"
  int threads = 0;                          ///< for that list; 0: all usable cores
  int channels = 0, height = 0, width = 0;  ///< the model's input; 0: what the model is usually given
  int classes = 10;
  bool measure = true;  ///< memory and all-reduce bandwidth: about two seconds, 200 MB; kernels: some more
};

/// Writes the findings as text. What the system refuses (pinning, a measurement) is said in its place, not
/// thrown.
///
/// Errors   Error(usage) for an unknown model or device
/// `session`: the processes that a launcher started; nullptr: this one was started alone.
/// `ranks_on_gpus`: of all processes; started alone, of each GPU.
void doctor(const DoctorOptions& options, const Session* session, const std::vector<RankOnGpu>& ranks_on_gpus,
            std::ostream& out);

/// Names and versions of the libraries that compute: for Environment::libraries.
[[nodiscard]] std::vector<std::string> libraries();

}  // namespace paceline::cli
