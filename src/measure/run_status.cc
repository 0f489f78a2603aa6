#include "measure/run_status.h"

#include <algorithm>

namespace paceline::measure {
namespace {

template <typename T>
void take_if_there(std::optional<T>& place, const std::optional<T>& value) {
  if (value) place = value;
}

}  // namespace

void RunStatus::take_start(const Event& event) {
  const auto text = [&](const char* key) { return event.text(key).value_or(""); };
  const auto kept = *this;
  *this = {};
  has_begun = true;
  kind = text("kind");
  model = text("model");
  data = text("data");
  command = text("command");
  host = text("host");
  process = event.whole("process").value_or(0);
  started_at = event.at();
  updates = event.whole("updates").value_or(0);
  cells = event.whole("cells").value_or(0);
  // A continued run keeps its best value so far.
  best_images_per_s = kept.best_images_per_s;
  best_cell = kept.best_cell;
  best_accuracy = kept.best_accuracy;
  recent = kept.recent;
}

void RunStatus::take_speed(std::optional<double> speed) {
  if (!speed) return;
  images_per_s = speed;
  recent.push_back(*speed);
  if (recent.size() > kRecent) recent.erase(recent.begin());
}

void RunStatus::take_accuracy(const Event& event) {
  take_if_there(train_accuracy, event.number("train_accuracy"));
  take_if_there(test_accuracy, event.number("test_accuracy"));
  take_if_there(validation_accuracy, event.number("validation_accuracy"));
  const auto reached = event.number("validation_accuracy") ? event.number("validation_accuracy")
                       : validation_accuracy               ? std::nullopt
                                                           : event.number("test_accuracy");
  if (reached) best_accuracy = std::max(*reached, best_accuracy.value_or(0));
}

void RunStatus::take_cell_done(const Event& event) {
  cells_done = event.whole("done").value_or(cells_done + 1);
  cells = event.whole("cells").value_or(cells);  // a study adds repeats for disturbed cells
  cell.clear();
  updates_done = updates = epoch = 0;
  const auto speed = event.number("images_per_s");
  take_speed(speed);
  if (const auto reached = event.number("accuracy"))
    best_accuracy = std::max(*reached, best_accuracy.value_or(0));
  if (!speed || event.is_true("oversubscribed") || *speed <= best_images_per_s.value_or(0)) return;
  best_images_per_s = speed;
  best_cell = event.text("cell").value_or("");
}

void RunStatus::take(const Event& event) {
  const auto& name = event.name();
  if (name == "start") take_start(event);
  last_at = std::max(last_at, event.at());
  if (name == "cell_begun") {
    cell = event.text("cell").value_or("");
    updates_done = updates = epoch = 0;
  } else if (name == "cell_done") {
    take_cell_done(event);
  } else if (name == "end") {
    has_ended = true;
    status = event.text("status").value_or("failed");
    reason = event.text("reason").value_or("");
    cell.clear();
    if (!is_training()) return;
    take_if_there(best_images_per_s, event.number("images_per_s"));
    take_if_there(test_accuracy, event.number("test_accuracy"));
  } else if (name == "step" || name == "epoch" || name == "evaluation" || name == "resume") {
    updates_done = event.whole("update").value_or(updates_done);
    updates = event.whole("updates").value_or(updates);
    epoch = event.whole("epoch").value_or(epoch);
    take_if_there(loss, name == "epoch" ? event.number("train_loss") : event.number("loss"));
    take_if_there(learning_rate, event.number("lr"));
    take_if_there(step_s, event.number("step_s"));
    if (name == "step") take_speed(event.number("images_per_s"));
    take_accuracy(event);
  }
}

std::optional<double> RunStatus::progress() const {
  const double inside =
      updates > 0 ? std::clamp(static_cast<double>(updates_done) / static_cast<double>(updates), 0.0, 1.0)
                  : 0;
  if (cells > 0)
    return std::min(1.0, (static_cast<double>(cells_done) + inside) / static_cast<double>(cells));
  return updates > 0 ? std::optional(inside) : std::nullopt;
}

}  // namespace paceline::measure
