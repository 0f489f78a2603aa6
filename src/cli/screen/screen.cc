#include "cli/screen/screen.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/text.h"
#include "cluster/log.h"
#include "cluster/passed_output.h"
#include "report/text.h"
#include "serve/http_server.h"

namespace paceline::cli {

RunLog::RunLog(const std::filesystem::path& directory, std::shared_ptr<train::StallListener> stalls,
               std::function<std::string()> follow)
    : log_(directory, cluster::log_line), stalls_(std::move(stalls)), follow_(std::move(follow)) {
  if (stalls_)
    stalls_->listen([this](const std::string& text) { write(measure::Event("stall").set("text", text)); });
}

RunLog::~RunLog() {
  if (stalls_) stalls_->listen({});
  if (is_open_) fail("");
}

void RunLog::write(const measure::Event& event) {
  if (event.name() == "start") is_open_ = true;
  if (event.name() == "start") start_ = event;
  constexpr std::array<std::string_view, 5> kFollowed{"step", "epoch", "checkpoint", "cell_begun",
                                                      "cell_done"};
  if (follow_ && std::ranges::find(kFollowed, event.name()) != kFollowed.end())
    if (const auto moved = follow_(); !moved.empty()) {
      log_.reopen();
      if (start_) log_.write(*start_);
      log_.write(measure::Event("moved").set("text", moved));
      cluster::log_line(moved);
    }
  if (event.name() == "end") is_open_ = false;
  log_.write(event);
}

void RunLog::fail(const std::string& reason) {
  measure::Event end("end");
  end.set("status", "failed");
  if (!reason.empty()) end.set("reason", reason);
  write(end);
}

std::string watch_line(const std::filesystem::path& directory) {
  return serve::has_http_server() ? "watch: paceline serve " + base::shell_word(directory.string()) : "";
}

namespace {

constexpr int kWidthOfFiles = 110;
constexpr std::int64_t kBar = 20;
constexpr double kSecondsBetweenDrawings = 0.1;

/// "0:41 < 0:19": time elapsed and time left.
std::string times(const Bar& bar) {
  return clock_text(bar.elapsed_s) + (bar.left_s ? " < " + clock_text(*bar.left_s) : "");
}

std::string counted(const Bar& bar) {
  std::string text = fmt::format("{}/{}", report::integer(static_cast<double>(bar.done)),
                                 report::integer(static_cast<double>(bar.all)));
  if (!bar.unit.empty()) text += " " + bar.unit;
  return text;
}

/// The bar: heavy line for the part that is done, to half a column.
std::string drawn(const Bar& bar) {
  const auto halves = bar.all > 0 ? 2 * kBar * std::clamp<std::int64_t>(bar.done, 0, bar.all) / bar.all : 0;
  std::string text;
  for (std::int64_t column = 0; column < kBar; ++column)
    text += 2 * column + 1 < halves ? "━" : 2 * column < halves ? "╸" : "─";
  return text;
}

/// The first `width` columns.
std::string cut(const std::string& text, std::size_t width) {
  std::string result;
  std::size_t columns = 0;
  for (const char byte : text) {
    const bool begins = (static_cast<unsigned char>(byte) & 0xc0) != 0x80;
    if (begins && ++columns > width) break;
    result += byte;
  }
  return result;
}

/// The columns of a word, colours not counted.
std::size_t columns_of(std::string_view word) {
  std::size_t columns = report::display_width(word);
  for (auto at = word.find('\x1b'); at != std::string_view::npos; at = word.find('\x1b', at + 1))
    columns -= std::min(word.find('m', at), word.size() - 1) - at + 1;
  return columns;
}

/// Where a line's text begins, behind blanks and a label in a column of its own ("  host          vm"); 0 if
/// that is beyond a third of the width.
std::size_t column_of_text(std::string_view line, std::size_t width) {
  const auto begin = std::min(line.find_first_not_of(' '), line.size());
  const auto gap = line.find("  ", begin);
  const auto text = gap == std::string_view::npos ? begin : line.find_first_not_of(' ', gap);
  return text == std::string_view::npos || text > width / 3 ? 0 : text;
}

/// The progress of one training. The time left assumes the mean time of this run's steps so far, including
/// evaluations.
struct TrainingProgress {
  std::optional<std::int64_t> first_step{};
  std::int64_t steps_per_epoch = 0;  ///< 0: not known yet
  std::string reached{};             ///< the last accuracy: ", 71.2 % tested"
  base::TimePoint began = base::Clock::now();

  Bar bar(std::int64_t step, std::int64_t steps, double loss, double images_per_s) {
    if (!first_step) {
      first_step = step;  // in a resumed training not the first of all
      began = base::Clock::now();
    }
    Bar bar{.done = step,
            .all = steps,
            .unit = "steps",
            .doing = steps_per_epoch > 0 ? fmt::format("epoch {}/{}{}", 1 + (step - 1) / steps_per_epoch,
                                                       1 + (steps - 1) / steps_per_epoch, reached)
                                         : "",
            .rate = fmt::format("loss {:.4f}  {} images/s", loss, report::integer(std::round(images_per_s))),
            .elapsed_s = base::seconds_since(began)};
    if (const auto done = step - *first_step; done > 0 && bar.elapsed_s > 1)
      bar.left_s = bar.elapsed_s * static_cast<double>(steps - step) / static_cast<double>(done);
    return bar;
  }
};

/// An epoch that was not trained to its end: "epoch 3   (102 of 468 steps)  loss ...".
std::string epoch_line(const measure::EpochRecord& epoch, std::int64_t steps_per_epoch) {
  const auto steps = steps_per_epoch > 0 ? epoch.updates % steps_per_epoch : 0;
  const std::string part = steps > 0 ? fmt::format("({} of {} steps)  ", steps, steps_per_epoch) : "";
  std::string line = fmt::format("epoch {:<3}  {}train loss {:.4f}  accuracy {:.2f} %", epoch.epoch, part,
                                 epoch.train_loss, 100 * epoch.train_accuracy);
  if (epoch.test_accuracy)
    line += fmt::format("   test loss {:.4f}  accuracy {:.2f} %", epoch.test_loss.value_or(0),
                        100 * *epoch.test_accuracy);
  if (epoch.test_top_5) line += fmt::format("  top-5 {:.2f} %", 100 * *epoch.test_top_5);
  const auto averaged =
      epoch.ema_validation_accuracy ? epoch.ema_validation_accuracy : epoch.ema_test_accuracy;
  if (averaged) line += fmt::format("   averaged {:.2f} %", 100 * *averaged);
  if (epoch.validation_accuracy)
    line += fmt::format("   validation {:.2f} %", 100 * *epoch.validation_accuracy);
  if (epoch.validation_top_5) line += fmt::format("  top-5 {:.2f} %", 100 * *epoch.validation_top_5);
  return line + fmt::format("   lr {:.4g}  {:.1f} s", epoch.lr, epoch.seconds);
}

}  // namespace

int terminal_width(int descriptor, int elsewhere) {
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40) return size.ws_col;
  return elsewhere;
}

Screen::Screen(bool json, Waits waits)
    : json_(json),
      live_(::isatty(STDERR_FILENO) == 1),
      breaks_(terminal_width(json ? STDERR_FILENO : STDOUT_FILENO, 0) > 0),
      colour_(!json && ::isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr),
      width_(terminal_width(live_ ? STDERR_FILENO : STDOUT_FILENO, kWidthOfFiles)) {
  if (waits == Waits::for_reader) return;
  const int descriptor = json ? STDERR_FILENO : STDOUT_FILENO;
  std::fflush(stdout);  // what was said before stays before
  if (base::has_reader(descriptor)) lines_ = std::make_shared<base::LineOutput>(descriptor);
  if (live_)
    bar_ = lines_ && cluster::go_to_one_place(descriptor, STDERR_FILENO)
               ? lines_
               : std::make_shared<base::LineOutput>(STDERR_FILENO);
}

Screen::~Screen() { clear_bar(); }

void Screen::say(const std::string& line) {
  const std::lock_guard lock(mutex_);
  clear_locked();
  const auto text = (breaks_ ? broken(line, width_) : line) + "\n";
  if (lines_) return lines_->write(text);
  std::FILE* const stream = json_ ? stderr : stdout;
  std::fputs(text.c_str(), stream);
  std::fflush(stream);
}

void Screen::draw(const Bar& bar) {
  if (!live_) return;
  const std::lock_guard lock(mutex_);
  if (drawn_ && bar.done < bar.all && base::seconds_since(last_) < kSecondsBetweenDrawings) return;
  last_ = base::Clock::now();
  drawn_ = true;
  const int width = terminal_width(STDERR_FILENO, width_);  // the window may have been resized
  draw_text("\r\033[K" + bar_text(bar, width - 1));
}

void Screen::draw_text(const std::string& text) {
  if (bar_) return bar_->draw(text);
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
}

void Screen::clear_bar() {
  const std::lock_guard lock(mutex_);
  clear_locked();
}

void Screen::clear_locked() {
  if (!drawn_) return;
  draw_text("\r\033[K");
  drawn_ = false;
}

train::Progress Screen::progress() {
  const auto training = std::make_shared<TrainingProgress>();
  return {
      .say = [this](const std::string& line) { say(line); },
      .step = [this, training](std::int64_t step, std::int64_t steps, double loss,
                               double images_per_s) { draw(training->bar(step, steps, loss, images_per_s)); },
      .epoch =
          [this, training](const measure::EpochRecord& epoch) {
            const auto accuracy = epoch.test_accuracy ? epoch.test_accuracy : epoch.validation_accuracy;
            if (accuracy)
              training->reached =
                  fmt::format(", {:.1f} % {}", 100 * *accuracy, epoch.test_accuracy ? "tested" : "validated");
            say(epoch_line(epoch, training->steps_per_epoch));
          },
      .event =
          [training](const measure::Event& event) {
            if (event.name() == "start")
              training->steps_per_epoch = event.whole("steps_per_epoch").value_or(0);
          },
  };
}

std::string broken(std::string_view text, int width) {
  std::string result;
  std::size_t column = 0, indent = 0;
  while (!text.empty()) {
    if (column == 0)
      indent = column_of_text(text.substr(0, text.find('\n')), static_cast<std::size_t>(width));
    const auto end = std::min(text.find_first_of(" \n"), text.size());
    const auto word = text.substr(0, end);
    const auto columns = columns_of(word);
    if (column > indent && result.back() == ' ' && column + columns > static_cast<std::size_t>(width)) {
      result.back() = '\n';  // replaces the blank before the word
      result.append(indent, ' ');
      column = indent;
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

void print(const std::string& text) {
  const int width = terminal_width(STDOUT_FILENO, 0);
  std::fputs((width > 0 ? broken(text, width) : text).c_str(), stdout);
}

std::string clock_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::llround(std::max(seconds, 0.0)));
  const auto hours = whole / 3600, minutes = whole / 60 % 60;
  return hours > 0 ? fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60)
                   : fmt::format("{}:{:02}", minutes, whole % 60);
}

std::string bar_text(const Bar& bar, int width) {
  const auto columns = static_cast<std::size_t>(std::max(width, 0));
  const std::string name = bar.name.empty() ? "" : fmt::format("{:<9} ", bar.name);
  const std::string begin = fmt::format(" {}{}  {}", name, drawn(bar), counted(bar));
  const std::string end = "   " + times(bar);
  std::string text;
  for (const auto& [has_doing, has_rate] : {std::pair{true, true}, {false, true}, {false, false}}) {
    text = begin;
    if (has_doing && !bar.doing.empty()) text += "  " + bar.doing;
    if (has_rate && !bar.rate.empty()) text += "   " + bar.rate;
    text += end;
    if (report::display_width(text) <= columns) return text;
  }
  return cut(text, columns);
}

std::string bar_line(const Bar& bar) {
  std::string text = fmt::format("  {:<9} {}", bar.name, counted(bar));
  if (!bar.doing.empty()) text += "  " + bar.doing;
  if (bar.left_s && bar.elapsed_s > 0)
    text += fmt::format("   {:.0f} %", 100 * bar.elapsed_s / (bar.elapsed_s + *bar.left_s));
  return text + "   " + times(bar);
}

}  // namespace paceline::cli
