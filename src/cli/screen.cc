#include "cli/screen.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "report/text.h"

namespace paceline::cli {
namespace {

constexpr int kWidthOfFiles = 110;
constexpr int kBar = 24;
constexpr double kSecondsBetweenDrawings = 0.1;

}  // namespace

int terminal_width(int descriptor, int elsewhere) {
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40) return size.ws_col;
  return elsewhere;
}

Screen::Screen(bool json)
    : json_(json),
      live_(::isatty(STDERR_FILENO) == 1),
      breaks_(terminal_width(json ? STDERR_FILENO : STDOUT_FILENO, 0) > 0),
      colour_(!json && ::isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr),
      width_(terminal_width(live_ ? STDERR_FILENO : STDOUT_FILENO, kWidthOfFiles)) {}

Screen::~Screen() { clear_bar(); }

void Screen::say(const std::string& line) {
  const std::lock_guard lock(mutex_);
  clear_locked();
  std::FILE* const stream = json_ ? stderr : stdout;
  std::fprintf(stream, "%s\n", line.c_str());
  std::fflush(stream);
}

void Screen::explain(const std::string& sentence) { say(breaks_ ? broken(sentence, width_) : sentence); }

void Screen::label(const std::string& text) {
  const std::lock_guard lock(mutex_);
  label_ = text;
}

void Screen::bar(std::int64_t step, std::int64_t steps, double loss, double images_per_s) {
  if (!live_) return;
  const std::lock_guard lock(mutex_);
  if (drawn_ && step < steps && base::seconds_since(last_) < kSecondsBetweenDrawings) return;
  last_ = base::Clock::now();
  drawn_ = true;
  std::fprintf(stderr, "\r\033[K%s", bar_text(label_, step, steps, loss, images_per_s, width_ - 1).c_str());
  std::fflush(stderr);
}

void Screen::clear_bar() {
  const std::lock_guard lock(mutex_);
  clear_locked();
}

void Screen::clear_locked() {
  if (!drawn_) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
  drawn_ = false;
}

train::Progress Screen::progress() {
  return {
      .say = [this](const std::string& line) { explain(line); },
      .step = [this](std::int64_t step, std::int64_t steps, double loss,
                     double images_per_s) { bar(step, steps, loss, images_per_s); },
      .epoch = [this](const measure::EpochRecord& epoch) { say(epoch_line(epoch)); },
  };
}

std::string epoch_line(const measure::EpochRecord& epoch) {
  std::string line = fmt::format("epoch {:<3}  train loss {:.4f}  accuracy {:.2f} %", epoch.epoch,
                                 epoch.train_loss, 100 * epoch.train_accuracy);
  if (epoch.test_accuracy)
    line += fmt::format("   test loss {:.4f}  accuracy {:.2f} %", epoch.test_loss.value_or(0),
                        100 * *epoch.test_accuracy);
  if (epoch.validation_accuracy)
    line += fmt::format("   validation {:.2f} %", 100 * *epoch.validation_accuracy);
  return line + fmt::format("   lr {:.4g}  {:.1f} s", epoch.lr, epoch.seconds);
}

std::string broken(std::string_view text, int width) {
  std::string result;
  std::size_t column = 0;
  while (!text.empty()) {
    const auto end = std::min(text.find_first_of(" \n"), text.size());
    const auto word = text.substr(0, end);
    const auto columns = report::display_width(word);
    if (column > 0 && result.back() == ' ' && column + columns > static_cast<std::size_t>(width)) {
      result.back() = '\n';  // the blank behind the word before
      column = 0;
    }
    result += word;
    column += columns;
    if (end == text.size()) break;
    result += text[end];
    column = text[end] == '\n' ? 0 : column + 1;
    text.remove_prefix(end + 1);
  }
  return result;
}

std::string bar_text(std::string_view label, std::int64_t step, std::int64_t steps, double loss,
                     double images_per_s, int width) {
  const auto done = steps > 0 ? static_cast<int>(kBar * std::min(step, steps) / steps) : 0;
  std::string text(label);
  if (!text.empty()) text += "  ";
  text += fmt::format("[{}{}] step {}/{}  loss {:.4f}  {:.0f} images/s", std::string(done, '='),
                      std::string(kBar - done, ' '), step, steps, loss, images_per_s);
  return text.substr(0, static_cast<std::size_t>(std::max(width, 0)));
}

}  // namespace paceline::cli
