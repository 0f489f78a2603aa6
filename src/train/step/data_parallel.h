#pragma once

/// Runs a step as torch.nn.DataParallel does it (--parallel data-parallel): worker 0 has the data, the
/// weights and the optimizer; the others only compute. It exists to compare the traffic through worker 0 with
/// that of an all-reduce (step.h).
///
///   scatter    worker 0 sends each worker its part of the global batch
///   forward    every worker, on its part
///   outputs    every worker sends its outputs to worker 0, which sends their gradients back
///   backward   every worker
///   reduce     every worker sends its gradient to worker 0, which adds them
///   update     worker 0 alone
///   weights    worker 0 sends them to every worker
///
/// Two details differ from DataParallel without changing bytes or order. Each worker computes the loss of its
/// own outputs, and a message of the outputs' size is sent in their place. The weights are sent after the
/// update, not before the next forward, so that all workers can evaluate. Gradients are added in the order of
/// the summation tree, so the bits are those of an all-reduce. Batch statistics are averaged with them;
/// DataParallel would use worker 0's alone.
///
/// Bytes and their formula: docs/collectives.md.

#include <cstdint>
#include <functional>
#include <vector>

#include "data/loader.h"
#include "engine/engine.h"
#include "train/given/job.h"
#include "train/step/step.h"

namespace paceline::train {

/// Bytes of arrays that the workers of `resolved` need for it, besides engines and worker 0's loader; for the
/// memory plan.
[[nodiscard]] std::int64_t data_parallel_bytes(const Options& options, const Resolved& resolved,
                                               std::int64_t pixels, int classes);

/// Threads  one, the worker's own
class DataParallelStepper final : public WaitedSteps {
 public:
  explicit DataParallelStepper(const StepContext& in);

  [[nodiscard]] const Buckets* buckets() const override { return nullptr; }
  [[nodiscard]] base::Array array() const override { return {}; }
  [[nodiscard]] std::size_t collectives() const override { return 5; }  ///< the calls of exchange()

 private:
  /// `whole` is the global batch at worker 0, null at the others.
  ///
  /// Errors   Error(comm) when a peer is lost
  const data::Batch& part_of(const data::Batch* whole, const Counters& done) override;
  StepResult run(const data::Batch& batch, const StepOrder& order) override;

  [[nodiscard]] bool is_root() const { return communicator_.rank() == 0; }
  /// Runs a blocking collective; all of its time is exposed.
  void exchange(const char* phase, std::int64_t update, const std::function<void()>& collective);
  /// Sends the outputs to worker 0 and back, together with the votes on stopping and failure.
  Votes agree(const engine::LossSums& local, const StepOrder& order);
  void reduce_gradients(std::int64_t update);
  void send_weights(std::int64_t update);

  std::vector<float> images_;                     ///< this worker's part; worker 0's is in its loader
  std::vector<std::int32_t> labels_;              ///< likewise
  std::vector<base::SecondLabel> second_labels_;  ///< likewise; of mixed images
  data::Batch batch_;
  std::vector<float> outputs_;      ///< [local batch * classes] and the votes of this worker
  std::vector<float> all_outputs_;  ///< worker 0: of all workers
  std::vector<float> gradients_;    ///< on the host, if the engine's are on a device
};

}  // namespace paceline::train
