#pragma once

/// The parts of cuda_probe. Each writes down what it finds as it goes, so that a process that is ended leaves
/// what it has found.

#include <chrono>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace paceline::probe {

using Json = nlohmann::ordered_json;

/// What a part has found so far.
class Findings {
 public:
  Findings(std::filesystem::path file, std::chrono::steady_clock::time_point end)
      : file_(std::move(file)), end_(end) {}

  Json json = Json::object();
  /// Puts `json` into the part's file, so that it outlives the process.
  void save() const;
  /// Runs `step`; what it throws is put under "failed" with `what`, and false returned. Saves.
  bool attempt(const std::string& what, const std::function<void()>& step);
  /// False, and "cut_off" says at what, when the part's time is nearly over.
  [[nodiscard]] bool has_time_for(const std::string& what);

 private:
  std::filesystem::path file_;
  std::chrono::steady_clock::time_point end_;
};

struct Part {
  const char* name;
  void (*run)(Findings&);
};

void find_libraries(Findings&);   ///< versions, and the plans for a described H100
void describe_device(Findings&);  ///< cuDNN's text of the device, against the described one's
void compare_plans(Findings&);    ///< what a handle is offered, against what the texts are
/// The first engine of each problem against plain loops on the processor; twice the same bits, also captured.
void check_first_engines(Findings&);
void check_more_engines(Findings&);  ///< the same of the first four
void time_convolutions(Findings&);   ///< the first engines of each convolution, by events
void check_large(Findings&);         ///< tensors of more than 2^31 elements
void time_copies(Findings&);         ///< bytes a second, each way
void time_launches(Findings&);       ///< what a launch costs the host and the device

}  // namespace paceline::probe
