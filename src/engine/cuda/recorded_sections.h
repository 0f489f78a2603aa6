#pragma once

/// Captured sections of the runtimes that have no device: lists of what was put on a stream, as it was then.

#include <functional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/cuda/stream.h"

namespace paceline::engine::cuda {

/// `Work`: one item of a stream.
template <typename Work>
class RecordedSections {
 public:
  /// Calls `post` and keeps what it gives to add(), as the section that is returned. What `post` throws ends
  /// the recording, and nothing is kept.
  [[nodiscard]] CapturedSection record(Stream stream, const std::function<void()>& post) {
    std::vector<Work> section;
    recording_ = &section;
    stream_ = stream;
    try {
      post();
    } catch (...) {
      recording_ = nullptr;
      throw;
    }
    recording_ = nullptr;
    sections_.push_back(std::move(section));
    return {static_cast<int>(sections_.size()) - 1};
  }
  [[nodiscard]] bool is_recording() const { return recording_ != nullptr; }
  /// Of the section that is recorded.
  [[nodiscard]] Stream stream() const { return stream_; }
  void add(Work work) { recording_->push_back(std::move(work)); }

  [[nodiscard]] int count() const { return static_cast<int>(sections_.size()); }
  [[nodiscard]] const std::vector<Work>& at(CapturedSection section) const {
    base::expects(section.index >= 0 && section.index < count(), "the runtime captured this section");
    return sections_[static_cast<std::size_t>(section.index)];
  }

 private:
  std::vector<std::vector<Work>> sections_;
  std::vector<Work>* recording_ = nullptr;  ///< null: work goes to its stream
  Stream stream_;
};

}  // namespace paceline::engine::cuda
