#pragma once

/// Makes curves of trainings: means over the seeds of a variant, epoch by epoch.

#include "analysis/trainings/converge.h"
#include "report/document.h"

namespace paceline::report {

enum class Over { epochs, updates, seconds };
enum class Quantity { test_accuracy, train_accuracy, test_loss, train_loss };

/// A point for each epoch with a known quantity: the mean over seeds (accuracy in %) with one standard error
/// to either side; one seed has none. Seconds are of training only, as means over the seeds; a line over
/// seconds is empty if they are unknown for a part. The name is the variant's.
[[nodiscard]] Series curve(const analysis::Variant& variant, Over over, Quantity quantity);

}  // namespace paceline::report
