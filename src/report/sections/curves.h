#pragma once

/// How trainings went, as lines: means over the seeds of a variant, epoch by epoch.

#include "analysis/converge.h"
#include "report/document.h"

namespace paceline::report {

enum class Over { epochs, updates, seconds };
enum class Quantity { test_accuracy, train_accuracy, test_loss, train_loss };

/// One point an epoch of which the quantity is known: accuracy in %, the mean over seeds, with one standard
/// error to either side; of one seed without. Seconds are those of training alone, the mean of the seeds'; a
/// line over them is empty where they are not known of a part. The name is the variant's.
[[nodiscard]] Series curve(const analysis::Variant& variant, Over over, Quantity quantity);

}  // namespace paceline::report
