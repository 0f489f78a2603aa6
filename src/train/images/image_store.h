#pragma once

/// Copies images to an engine that keeps them (Resolved::stored), each set when it is first needed, and keeps
/// their labels on the host.

#include <cstdint>
#include <span>
#include <vector>

#include "data/augment.h"
#include "data/dataset.h"
#include "engine/engine.h"
#include "train/given/job.h"

namespace paceline::train {

/// Threads  one, the worker's own
class ImageStore {
 public:
  /// Only for jobs whose engines keep images.
  ImageStore(const Job& job, const data::Augment& augment, engine::Engine& engine);

  /// Images of a set on the device.
  struct Part {
    std::int64_t first = 0;  ///< the draw index of its first image
    std::vector<std::int32_t> labels;
    bool is_there = false;
  };
  // The first call of each function reads the images and copies them to the device.
  //
  // Errors   Error(data) for an image that cannot be read

  [[nodiscard]] const Part& train();
  /// Samples [begin, end) of the set; the same at every call.
  [[nodiscard]] const Part& validation(std::int64_t begin, std::int64_t end);
  [[nodiscard]] const Part& test(std::int64_t begin, std::int64_t end);

  /// What one worker holds on the host, for the memory plan.
  [[nodiscard]] static std::int64_t planned_bytes(const StoredImages& stored);

 private:
  const Part& fill(Part& part, const data::Dataset& set, std::int64_t begin, std::int64_t end);

  const Job& job_;
  engine::Engine& engine_;
  Part train_, validation_, test_;
};

}  // namespace paceline::train
