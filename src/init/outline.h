#pragma once

/// The choices of a recipe on which the others depend: model, size of images, batch, epochs.

#include <cstdint>
#include <string>

#include "engine/engine.h"
#include "init/data_facts.h"

namespace paceline::init {

/// Properties of the machine on which choices depend.
struct MachineFacts {
  int cores = 1;
  engine::AutoPrecision precision = {};  ///< of --precision auto
  std::int64_t most_batch = 128;         ///< that fits into memory; a power of two
};

/// What the user has already chosen; empty: nothing.
struct GivenModel {
  std::string model;    ///< a name of the zoo, or a file
  std::string weights;  ///< a file for it, from which training begins
};

/// Floating-point operations per second and core for estimates where nothing was measured: what a core of a
/// notebook of 2015 reaches on convolutions. It chooses between image sizes and models, and never replaces a
/// measured time.
inline constexpr double kCountedFlops = 2e10;

// Thresholds at which a choice changes. Reasons in the recipe name them.
inline constexpr std::int64_t kFewImages = 5'000;  ///< 11 million parameters memorise fewer
inline constexpr double kWishedSeconds = 1800;     ///< wanted time of the whole training
inline constexpr std::int64_t kUpdates = 3'000;    ///< that a training should have
inline constexpr std::int64_t kUpdatesAnEpoch = 40;
inline constexpr int kFewestEpochs = 20, kMostEpochs = 60;
inline constexpr double kTuningPart = 0.2;  ///< of rate and updates of a training from random weights

struct Outline {
  std::string model;
  int side = 0;
  bool is_characters = false;
  double flops = 0;  ///< for training on one image
};

[[nodiscard]] std::int64_t batch_for(const DataFacts& facts, std::int64_t most);
[[nodiscard]] int epochs_for(const DataFacts& facts, std::int64_t batch, const GivenModel& given);
/// Of the whole training, estimated by kCountedFlops.
[[nodiscard]] double seconds_of(const DataFacts& facts, const MachineFacts& machine, double flops,
                                int epochs);

/// Chooses the image size: the largest for which images need not be enlarged and the training ends within
/// kWishedSeconds, but at least large enough to recognise something. Weights see the size that their model's
/// file names.
[[nodiscard]] Outline shape_for(const DataFacts& facts, const MachineFacts& machine, const GivenModel& given,
                                int epochs);
[[nodiscard]] std::string reason_of_size(const DataFacts& facts, const Outline& shape,
                                         const GivenModel& given);

}  // namespace paceline::init
