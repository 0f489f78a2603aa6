#include "train/classify.h"

#include <fmt/format.h>

#include <cstdio>
#include <limits>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/commands/submission.h"
#include "cli/screen/screen.h"
#include "cluster/interrupt.h"
#include "cluster/make_backend.h"
#include "measure/record_file.h"
#include "table/table.h"

namespace paceline::cli {
namespace {

/// "cat.jpg: tabby 82.3 %, tiger 10.1 %"
std::string line_of_image(const train::ClassifiedImage& image) {
  std::string line = base::visible(image.file) + ":";
  for (const auto& [name, probability] : image.classes)
    line += fmt::format("{} {} {:.1f} %", line.ends_with(':') ? "" : ",", name, 100 * probability);
  return line + "\n";
}

/// "file,class,probability", then for --top 3 also "class_2,probability_2,class_3,probability_3".
std::string head_of_images(std::size_t classes) {
  std::string head = "file,class,probability";
  for (std::size_t i = 2; i <= classes; ++i) head += fmt::format(",class_{0},probability_{0}", i);
  return head + "\n";
}

std::string row_of_image(const train::ClassifiedImage& image) {
  std::string row = table::csv_cell(image.file);
  for (const auto& [name, probability] : image.classes)
    row += fmt::format(",{},{:.6f}", table::csv_cell(name), probability);
  return row + "\n";
}

}  // namespace

int classify_command(const Settings& settings) {
  const auto& out = settings.classified;
  if (!out.empty()) measure::require_output(out, "--out");
  auto request = settings.classify;
  std::optional<Submission> submission;
  if (!settings.submission_columns.empty() || !settings.sample_submission.empty()) {
    if (out.empty())
      base::fail(ErrorKind::usage, "--{} is about the table of --out; add --out FILE.csv",
                 settings.submission_columns.empty() ? "sample-submission" : "columns");
    submission.emplace(settings.submission_columns, settings.sample_submission);
    request.top = std::numeric_limits<int>::max();
  }
  // What is not a class of an image goes to standard error, so that the lines can be piped.
  Screen screen(true, Waits::never);
  for (const auto& note : settings.notes) screen.say(note);
  const cluster::Interrupt interrupt;
  const auto began = base::Clock::now();
  std::int64_t done = 0, unread = 0, all = 0;
  std::string table;
  const auto begin = [&](const train::ImagesToClassify& given) {
    if (submission) submission->set_classes(given.classes);
    all = given.images;
    unread = static_cast<std::int64_t>(given.faults.size());
    screen.say(given.description);
    for (const auto* said : {&given.notes, &given.faults})
      for (const auto& sentence : *said) screen.say(base::visible(sentence));
  };
  const auto take = [&](const train::ClassifiedImage& image) {
    if (!image.fault.empty()) {
      ++unread;
      screen.say(base::visible(image.fault));
      return;
    }
    ++done;
    if (out.empty()) {
      print(line_of_image(image));
      std::fflush(stdout);
      return;
    }
    if (submission) {
      submission->add(image);
    } else {
      if (table.empty()) table = head_of_images(image.classes.size());
      table += row_of_image(image);
    }
    screen.draw({.name = "classify",
                 .done = done,
                 .all = all,
                 .unit = "images",
                 .elapsed_s = base::seconds_since(began)});
  };
  train::classify_images(settings.train, request, cluster::make_backend(settings.train.device),
                         interrupt.token(), begin, take);
  screen.clear_bar();
  if (interrupt.token().stop_requested()) {
    screen.say("interrupted: stopped as asked after {} of {} images{}", done, all,
               out.empty() ? "" : fmt::format("; {} was not written", out.string()));
    return interrupt.exit_code();
  }
  if (submission && done > 0) {
    table = submission->text();
    if (const auto sentence = submission->left_over(); !sentence.empty()) screen.say(sentence);
  }
  if (!out.empty() && done > 0) {
    base::write_file(out, table);
    print("{}: {}\n", base::counted(done, "image"), base::visible(out.string()));
  }
  if (unread == 0) return 0;
  screen.say(done == 0
                 ? "no image could be classified"
                 : fmt::format("{} of what was given could not be read and {} left out; the {} "
                               "classified",
                               unread, unread == 1 ? "is" : "are",
                               done == 1 ? "other image is" : fmt::format("other {} images are", done)));
  return static_cast<int>(ErrorKind::data);
}

}  // namespace paceline::cli
