#pragma once

/// Whole trainings in a test: a backend of the real engines and communicators, and a small model that has
/// everything that could depend on the number of workers (dropout, batch norm, augmentation).

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "train/made_up_machine.h"
#include "train/run.h"

namespace paceline::train {

/// A directory of its own for each test, removed afterwards.
class TrainingTest : public testing::Test {
 protected:
  TrainingTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "paceline-test-XXXXXX").string();
    directory_ = ::mkdtemp(pattern.data());
    base::write_file(directory_ / "small.toml", std::string_view(kModel));
  }
  ~TrainingTest() override { std::filesystem::remove_all(directory_); }

  /// A training that ends in a second: 64 samples of synthetic data a step of 16.
  [[nodiscard]] Options small(const std::string& out = "") const {
    Options options;
    options.model = (directory_ / "small.toml").string();
    options.data = "synthetic,train=96,test=40";
    options.device = "cpu";
    options.precision = "fp32";
    options.global_batch = 16;
    options.epochs = 0;
    options.steps = 10;
    options.lr = 0.05;
    options.pin = false;
    if (!out.empty()) options.out = directory_ / out;
    return options;
  }

  static measure::Record train(const Options& options, std::stop_token stop = {},
                               const Progress& progress = {}) {
    return run(options, backend_of(options.device), stop, progress);
  }

  /// A model whose gradient begins with short arrays: the head's, behind a convolution's. Returns its file.
  [[nodiscard]] std::string short_head() const {
    const auto file = directory_ / "short-head.toml";
    base::write_file(file, std::string_view(R"(
[[layer]]
op = "conv2d"
name = "conv1"
channels = 8
stride = 2
[[layer]]
op = "relu"
[[layer]]
op = "conv2d"
name = "conv2"
channels = 16
stride = 2
[[layer]]
op = "global_average_pool"
[[layer]]
op = "dense"
name = "fc"
features = "classes"
)"));
    return file.string();
  }

  /// The bytes of the last checkpoint that a training of `options` leaves.
  std::string checkpoint_of(Options options, const std::string& out) {
    options.out = directory_ / out;
    (void)train(options);
    return base::read_file(options.out / "checkpoint-00000010.safetensors");
  }

  /// What a training of `options` is refused with, or "accepted".
  static std::string refusal(const Options& options) {
    try {
      (void)train(options);
    } catch (const base::Error& error) {
      return error.what();
    }
    return "accepted";
  }

  std::filesystem::path directory_;

 private:
  static constexpr const char* kModel = R"(
[[layer]]
op = "conv2d"
name = "conv1"
channels = 16
kernel = 3
padding = 1
stride = 2
[[layer]]
op = "batch_norm"
name = "bn1"
[[layer]]
op = "relu"
[[layer]]
op = "conv2d"
name = "conv2"
channels = 16
kernel = 3
padding = 1
stride = 2
[[layer]]
op = "batch_norm"
name = "bn2"
[[layer]]
op = "relu"
[[layer]]
op = "max_pool"
kernel = 2
[[layer]]
op = "dropout"
probability = 0.25
[[layer]]
op = "dense"
name = "fc"
features = "classes"
)";
};

}  // namespace paceline::train
