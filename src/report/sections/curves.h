#pragma once

/// Makes curves of trainings: means over the seeds of a variant, epoch by epoch.

#include <optional>
#include <string>
#include <vector>

#include "analysis/trainings/converge.h"
#include "analysis/trainings/noise.h"
#include "analysis/trainings/whole_trainings.h"
#include "report/document.h"

namespace paceline::report {

// Makes tables, plots and sentences about the course of trainings: training, validation and test figures of
// each epoch, and overfitting.

/// "NAME overfits from epoch 7: ..."; nothing if it does not.
[[nodiscard]] std::optional<Paragraph> text_about_overfitting(const std::string& name,
                                                              const analysis::Course& course);
/// "From one epoch to the next its test accuracy changed by 1.3 points, mean of the last 5"; nothing for
/// fewer than three epochs.
[[nodiscard]] std::optional<std::string> text_about_steadiness(const analysis::Course& course);

/// A row per variant: training, validation and test loss and accuracy at the last epoch, their gap, the epoch
/// from which it overfits, and how steady the last epochs were.
[[nodiscard]] Table course_table(const analysis::Convergence& result);
/// A line per variant over epochs: training loss and accuracy, test loss, and validation loss and accuracy if
/// there are any.
[[nodiscard]] std::vector<Plot> course_plots(const analysis::Convergence& result);

/// A row per training: the times of an epoch, of the whole, and until a common accuracy, each with its
/// speedup.
[[nodiscard]] Table whole_trainings_table(const analysis::Convergence& result,
                                          const analysis::WholeTrainings& whole);
/// The same as a sentence about the most workers.
[[nodiscard]] std::optional<std::string> text_about_whole_trainings(const analysis::Convergence& result,
                                                                    const analysis::WholeTrainings& whole);

/// A row per variant with several seeds: whether it is no worse than the baseline; nothing without one.
[[nodiscard]] std::optional<Table> claims_table(const analysis::Convergence& result);
/// The same as a sentence about the large batch.
[[nodiscard]] std::optional<std::string> text_about_claim(const analysis::Convergence& result);

/// The noise scale of the gradient over epochs, of points whose interval has two ends. `caption` says which
/// training it is.
[[nodiscard]] Plot noise_plot(const analysis::NoiseCourse& course, const std::string& id,
                              const std::string& caption);
/// The same as a sentence: up to which batch samples are not wasted.
[[nodiscard]] std::string text_about_noise(const analysis::NoiseCourse& course);

/// Plots the variants' test accuracy over epochs, over updates and over seconds of training, as means over
/// seeds. The last plot has only variants whose seconds can be compared with the first's. None if nothing was
/// trained.
[[nodiscard]] std::vector<Plot> converge_plots(const analysis::Convergence& result);

enum class Over { epochs, updates, seconds };
enum class Quantity { test_accuracy, train_accuracy, test_loss, train_loss };

/// A point for each epoch with a known quantity: the mean over seeds (accuracy in %) with one standard error
/// to either side; one seed has none. Seconds are of training only, as means over the seeds; a line over
/// seconds is empty if they are unknown for a part. The name is the variant's.
[[nodiscard]] Series curve(const analysis::Variant& variant, Over over, Quantity quantity);

}  // namespace paceline::report
