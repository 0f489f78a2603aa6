#include "engine/cuda/logits_reader.h"

#include <cstdint>

namespace paceline::engine::cuda {

void LogitsReader::read(const Program& program, const ExecContext& exec, int count, int views,
                        std::span<double> logits) {
  const Value& value = program.logits();
  const int classes = program.graph().classes(), padded = value.channels();
  with_storage(program.options().precision, [&]<typename T>(T) {
    if (pinned_ == nullptr)
      pinned_ = exec.runtime.allocate_pinned(static_cast<std::size_t>(program.options().batch) *
                                             static_cast<std::size_t>(padded) * sizeof(T));
    const auto* stored = reinterpret_cast<const T*>(pinned_);
    exec.runtime.copy_to_host(exec.compute, pinned_, exec.memory.at<T>(value.buffer),
                              static_cast<std::size_t>(std::int64_t{1} * count * views * padded) * sizeof(T));
    exec.runtime.synchronize(exec.compute);
    for (int n = 0; n < count; ++n)
      for (int k = 0; k < classes; ++k) {
        double sum = 0;
        for (int view = 0; view < views; ++view)
          sum += static_cast<double>(load(stored[(std::int64_t{1} * n * views + view) * padded + k]));
        logits[static_cast<std::size_t>(std::int64_t{1} * n * classes + k)] = views == 1 ? sum : sum / views;
      }
  });
}

}  // namespace paceline::engine::cuda
