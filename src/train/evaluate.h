#pragma once

/// Exact evaluation: every test sample once, whatever the number of workers.

#include <optional>
#include <stop_token>

#include "comm/communicator.h"
#include "data/augment.h"
#include "data/evaluation.h"
#include "engine/engine.h"
#include "measure/record.h"
#include "train/image_store.h"
#include "train/job.h"

namespace paceline::train {

/// The loader options of `rank`'s part of the test set, for an engine that takes `batch` images. It brings no
/// threads: those of the training loaders have nothing else to do meanwhile. `is_sharded`: the figures are
/// the same bits for any number of workers, so each rank takes whole batches.
[[nodiscard]] data::EvaluationOptions evaluation_options(std::int64_t test_samples, std::int64_t batch,
                                                         int views, int rank, int world, bool is_sharded);

/// Whether the epoch that ends with `counters` is evaluated.
[[nodiscard]] bool is_evaluated(const Job& job, const Counters& counters);
/// How many epochs from `first` (from 1) on are evaluated, if nothing stops the run before its end.
[[nodiscard]] std::int64_t planned_evaluations(const Job& job, std::int64_t first);

/// One pass over `batches` (this rank's part of the test set) with the engine's weights; sums and counts are
/// added over ranks. Nothing where `stop` was requested of some rank: the pass ends after its batch.
/// Collective; the same on every rank.
[[nodiscard]] std::optional<engine::LossSums> evaluate(data::EvaluationBatches& batches, int views,
                                                       engine::Engine& engine,
                                                       comm::Communicator& communicator,
                                                       const std::stop_token& stop);

/// Adds local sums over all ranks. Collective.
[[nodiscard]] engine::LossSums reduce_sums(const engine::LossSums& local, comm::Communicator& communicator);

/// The test set of a run, and its validation set where there is one. Their loaders are made at the first
/// evaluation, which also puts their images on the device where they are kept there.
class Evaluator {
 public:
  /// `store`: null where the host prepares the images.
  Evaluator(const Job& job, const data::Augment& augment, engine::Engine& engine,
            comm::Communicator& communicator, ImageStore* store)
      : job_(job), augment_(augment), engine_(engine), communicator_(communicator), store_(store) {}

  /// Fills in losses and accuracies of `epoch`: of the validation set where there is one, and of the test set
  /// where --test-set is `every`. `test_passes`: how often this run will read the test set in all; nothing
  /// beyond is read ahead. False where the run was asked to stop: nothing is filled in then. Collective.
  [[nodiscard]] bool evaluate(measure::EpochRecord& epoch, std::int64_t test_passes);

  struct Figures {
    double loss = 0, accuracy = 0;
  };
  /// The whole test set with the engine's weights, once; nothing where the run was asked to stop. Collective;
  /// the same figures on every rank.
  [[nodiscard]] std::optional<Figures> test();

 private:
  std::optional<engine::LossSums> evaluate_on(const data::Dataset& set,
                                              std::optional<data::EvaluationBatches>& batches,
                                              std::int64_t passes);
  void use_stored(const data::Dataset& set, data::EvaluationOptions& options);

  const Job& job_;
  const data::Augment& augment_;
  engine::Engine& engine_;
  comm::Communicator& communicator_;
  ImageStore* store_;
  std::optional<data::EvaluationBatches> test_batches_;
  std::optional<data::EvaluationBatches> validation_batches_;
};

}  // namespace paceline::train
