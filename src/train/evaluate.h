#pragma once

/// Evaluates a test or validation set exactly: every sample once, whatever the number of workers.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include "comm/communicator.h"
#include "data/augment.h"
#include "data/dataset.h"
#include "data/loader.h"
#include "engine/engine.h"
#include "measure/record.h"
#include "train/given/job.h"
#include "train/step/slow_weights.h"

namespace paceline::train {

// Copies images to an engine that keeps them (Resolved::stored), each set when it is first needed, and keeps
// their labels on the host.

/// Threads  one, the worker's own
class ImageStore {
 public:
  /// Only for jobs whose engines keep images.
  ImageStore(const Job& job, const data::Augment& augment, engine::Engine& engine);

  /// Images of a set on the device.
  struct Part {
    std::int64_t first = 0;  ///< the draw index of its first image
    std::int64_t room = 0;   ///< for so many images
    std::vector<std::int32_t> labels;
    bool is_there = false;
  };
  /// Samples [begin, end) of a set of the source; the same at every call. The first call reads the images and
  /// copies them to the device.
  ///
  /// Errors   Error(data) for an image that cannot be read
  [[nodiscard]] const Part& part_of(const data::Dataset& set, std::int64_t begin, std::int64_t end);

  /// What one worker holds on the host, for the memory plan.
  [[nodiscard]] static std::int64_t planned_bytes(const StoredImages& stored);

 private:
  void fill(Part& part, const data::Dataset& set, std::int64_t begin, std::int64_t end);

  const data::Source& source_;
  engine::Engine& engine_;
  Part train_, validation_, test_;
};

/// Loader options for `rank`'s part of a set of `samples`. It starts no threads, since those of the training
/// loaders are idle. With --shard the figures must be the same bits for any number of workers, so each rank
/// evaluates whole batches.
[[nodiscard]] data::EvaluationOptions evaluation_options(const Options& options, const Resolved& resolved,
                                                         std::int64_t samples, int rank);

/// Whether the weights are evaluated at `counters`: the epoch that ends there is, or --evaluate-steps says
/// so.
[[nodiscard]] bool is_evaluated(const Job& job, const Counters& counters);
/// How many evaluations follow the first `done` updates, if the run is not stopped early.
[[nodiscard]] std::int64_t planned_evaluations(const Job& job, std::int64_t done);

/// From so many classes on, evaluations also count labels that are among the five largest logits.
inline constexpr int kLeastForTopFive = 20;
/// Whether `label` is among the five largest of `logits` [classes]; of equal ones the first counts as larger.
[[nodiscard]] bool is_in_five(std::span<const double> logits, std::int32_t label);

struct EvaluatedSums : engine::LossSums {
  std::optional<std::int64_t> correct_in_5 = {};  ///< none below kLeastForTopFive classes
};

/// Takes a sample of a data set by its index, with its label and its logits [classes].
using TakeSample =
    std::function<void(std::int64_t index, std::int32_t label, std::span<const double> logits)>;

/// Evaluates `batches` with the engine's weights, until `stop` is requested. If `take` is not empty it gets
/// each sample.
[[nodiscard]] engine::LossSums evaluate_samples(data::EvaluationBatches& batches, int views,
                                                engine::Engine& engine, const std::stop_token& stop,
                                                const TakeSample& take);

/// Evaluates `batches` (this rank's part of the test set) with the engine's weights and adds sums and counts
/// over ranks. Returns nothing if any rank was asked to stop (`stop`); then it ends after the current batch.
/// Collective; the same result on every rank.
[[nodiscard]] std::optional<EvaluatedSums> evaluate(data::EvaluationBatches& batches, int views,
                                                    engine::Engine& engine, comm::Communicator& communicator,
                                                    const std::stop_token& stop);

/// Adds local sums over all ranks. Collective.
[[nodiscard]] engine::LossSums reduce_sums(const engine::LossSums& local, comm::Communicator& communicator);

/// `graph` for the size in which evaluation sees the images of `source`; nothing where that is its own.
///
/// Errors   Error(usage): the parameters would have other shapes
[[nodiscard]] std::optional<graph::Graph> make_evaluation_graph(const graph::Graph& graph,
                                                                const data::Source& source);
/// Evaluates the test set of a run, and its validation set if there is one. The first evaluation makes their
/// loaders, and copies their images to the device if they are kept there.
class Evaluator {
 public:
  /// `store`: null if the host prepares the images.
  /// Cost     compiles an engine of its own if evaluation takes images of another size than training
  Evaluator(const Job& job, const data::Augment& augment, engine::Engine& engine,
            comm::Communicator& communicator, ImageStore* store, SlowWeights& slow);

  /// Fills in losses and accuracies of `epoch`, also with the average of --ema, of the validation set if
  /// there is one, and of the test set if
  /// --test-set is `every`. `test_passes`: how often this run reads the test set in all, so that nothing more
  /// is prepared ahead. False, with nothing filled in, if the run was asked to stop. Collective. The weights
  /// of one update are evaluated once: an epoch may end where --evaluate-steps evaluated them.
  [[nodiscard]] bool evaluate(measure::EpochRecord& epoch, std::int64_t test_passes);

  /// Evaluates the whole test set once; nothing if the run was asked to stop. Collective; the same figures on
  /// every rank.
  [[nodiscard]] std::optional<measure::TestSetRecord> test();

 private:
  /// What an evaluation of one set of weights gave; a set that was not to be evaluated has no sums.
  struct Sums {
    std::optional<EvaluatedSums> test, validation;
  };
  /// Nothing if the run was asked to stop.
  [[nodiscard]] std::optional<Sums> evaluate_sets(std::int64_t test_passes);
  /// Calls `evaluate` while the engine has the average of --ema.
  template <typename Evaluate>
  auto with_average(const Evaluate& evaluate);
  std::optional<EvaluatedSums> evaluate_on(const data::Dataset& set,
                                           std::optional<data::EvaluationBatches>& batches,
                                           std::int64_t passes);
  /// The engine for images of the evaluated size; where it is another than the training's, the weights are
  /// copied to it.
  engine::Engine& engine_now();

  const Job& job_;
  const data::Augment& augment_;
  engine::Engine& engine_;
  comm::Communicator& communicator_;
  ImageStore* store_;
  SlowWeights& slow_;
  std::unique_ptr<engine::Engine> other_engine_;  ///< null: engine_ evaluates
  std::optional<data::Augment> other_augment_;    ///< of its images
  std::int64_t last_update_ = -1;                 ///< whose weights were evaluated last, with these results:
  Sums last_, last_averaged_;
  std::optional<data::EvaluationBatches> test_batches_;
  std::optional<data::EvaluationBatches> validation_batches_;
};

}  // namespace paceline::train
