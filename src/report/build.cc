#include "report/build.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <map>
#include <set>
#include <utility>

#include "report/answers/answers.h"
#include "report/answers/wording.h"
#include "report/conclusions.h"
#include "report/sections/parts.h"
#include "report/sections/sections.h"
#include "report/terminal_text.h"
#include "report/text.h"

namespace paceline::report {
namespace {

using measure::Record;

/// The distinct non-empty values that `get` finds, in order of appearance.
template <typename Get>
std::vector<std::string> distinct(std::span<const Record> records, Get get) {
  std::vector<std::string> values;
  for (const Record& record : records) {
    const std::string value = get(record);
    if (!value.empty() && std::ranges::find(values, value) == values.end()) values.push_back(value);
  }
  return values;
}

std::string joined(const std::vector<std::string>& values) {
  return fmt::format("{}", fmt::join(values, "; "));
}

std::string describe_model(const Record& record) {
  if (record.model.parameters == 0) return "";
  return fmt::format("{} ({} parameters)", record.model.name, integer(record.model.parameters));
}

std::string describe_data(const Record& record) {
  const std::string name = measure::name_of_data(record);
  if (name.empty() || record.data.train_samples == 0) return "";
  return fmt::format(
      "{}{} ({} + {} images)", name,
      record.data.synthetic && name.find("synthetic") == std::string::npos ? " (synthetic)" : "",
      integer(record.data.train_samples), integer(record.data.test_samples));
}

std::string day_of(const Record& record) { return record.created.substr(0, 10); }

void add_fact(Document& document, const std::string& name, const std::string& value) {
  if (!value.empty()) document.facts.emplace_back(name, value);
}

/// "ninja up to 0.9 cores, firefox 0.2": over all windows, the busiest three.
std::string other_programs(std::span<const Record> records) {
  constexpr std::size_t kMost = 3;
  std::map<std::string, double> most;
  for (const Record& record : records)
    if (record.window.others)
      for (const auto& program : *record.window.others)
        most[program.name] = std::max(most[program.name], program.cores);
  std::vector<std::string> texts;
  for (const auto& [name, cores] : largest_first(most))
    if (texts.size() < kMost) texts.push_back(fmt::format("{} up to {:.2f} cores", name, cores));
  return fmt::format("{}", fmt::join(texts, ", "));
}

void add_facts(Document& document, std::span<const Record> records) {
  const auto fact = [&](const std::string& name, auto get) {
    add_fact(document, name, joined(distinct(records, get)));
  };
  fact("CPU", [](const Record& r) {
    return r.environment.cpu.empty()
               ? std::string()
               : fmt::format("{}, {}", r.environment.cpu, counted(r.environment.cores, "core"));
  });
  fact("memory", [](const Record& r) {
    return r.environment.memory_bytes > 0 ? bytes(static_cast<double>(r.environment.memory_bytes))
                                          : std::string();
  });
  fact("instruction sets",
       [](const Record& r) { return fmt::format("{}", fmt::join(r.environment.instructions, ", ")); });
  fact("system", [](const Record& r) { return r.environment.os; });
  fact("host", [](const Record& r) { return r.environment.host; });
  fact("build", [](const Record& r) {
    return r.environment.build.empty() ? std::string()
                                       : fmt::format("{}, {}", r.environment.build, r.environment.compiler);
  });
  fact("version", [](const Record& r) { return r.environment.version; });
  fact("libraries",
       [](const Record& r) { return fmt::format("{}", fmt::join(r.environment.libraries, ", ")); });
  fact("data", [](const Record& r) { return r.data.description; });
  fact("precision", [](const Record& r) { return r.precision; });
  fact("device", [](const Record& r) {
    return r.device_name ? fmt::format("{}, {}", r.device, *r.device_name) : r.device;
  });
  fact("GPUs", [](const Record& r) {
    return r.environment.gpus ? fmt::format("{}", fmt::join(*r.environment.gpus, "; ")) : std::string();
  });
  add_fact(document, "other programs on the cores", other_programs(records));
  fact("communicator", [](const Record& r) {
    return r.communication.communicator == "none" || r.communication.communicator.empty()
               ? std::string()
               : fmt::format("{}: {}", r.communication.communicator, r.communication.algorithm);
  });
  fact("learning rate", [](const Record& r) {
    if (r.learning_rate.peak == 0 || (r.kind != "train" && r.kind != "converge")) return std::string();
    return fmt::format("{:g} = {:g} x {:g} (rule {}, base for batch {})", r.learning_rate.peak,
                       r.learning_rate.base, r.learning_rate.factor, r.learning_rate.rule,
                       r.learning_rate.reference_batch);
  });
  fact("measured by", [](const Record& r) { return r.command; });
  const auto days = distinct(records, day_of);
  if (!days.empty()) {
    const auto [first, last] = std::minmax_element(days.begin(), days.end());
    add_fact(document, "date", *first == *last ? *first : *first + " to " + *last);
  }
}

/// Whether a record is of a search or an evaluation, which have answers of their own.
bool answers_its_own(const Record& record) { return record.kind == "search" || record.evaluation; }

/// "82 runs in 60 s", "CPU, bf16": the line under the title.
void add_circumstances(Document& document, const Conclusions& conclusions) {
  const auto& records = conclusions.records;
  const auto found =
      std::ranges::find_if(records, [](const Record& record) { return !record.ranks.empty(); });
  const Record& first = found == records.end() ? records.front() : *found;
  auto& line = document.circumstances;
  std::string machine = first.environment.cpu.substr(0, first.environment.cpu.find(" with "));
  if (first.environment.cores > 0)
    machine += fmt::format("{}{}", machine.empty() ? "" : ", ", counted(first.environment.cores, "core"));
  if (!machine.empty()) line.push_back(std::move(machine));
  line.push_back(fmt::format("{}{}{}", first.device.empty() || first.device == "cpu" ? "CPU" : first.device,
                             first.precision.empty() ? "" : ", ", first.precision));
  double seconds = 0;
  for (const Record& record : records) seconds += record.window.wall_s;
  line.push_back(fmt::format("{}, {} measured", counted(records.size(), "run"), duration(seconds)));
  if (!day_of(first).empty()) line.push_back(day_of(first));
  if (!first.environment.version.empty())
    line.push_back("paceline " + first.environment.version.substr(0, first.environment.version.find(' ')));
}

/// The name of a table of times, and its measured cells.
struct TableOfTimes {
  std::string name;
  std::vector<const analysis::Cell*> cells;
};

/// The tables of each model: the sweep on the fewest workers, weak scaling, strong scaling. Set-ups within
/// scaling have their own columns.
std::vector<TableOfTimes> tables_of_times(const Conclusions& conclusions, const std::string& subject) {
  std::vector<TableOfTimes> tables;
  for (const auto& sweep : conclusions.sweeps) {
    if (sweep.subject != subject || !tables.empty()) continue;
    TableOfTimes table{"the batch sweep", {}};
    for (const auto& point : sweep.points)
      if (point.cell->is_measured()) table.cells.push_back(point.cell);
    if (!table.cells.empty()) tables.push_back(std::move(table));
  }
  for (const auto& [called, groups] :
       {std::pair{"weak scaling", &conclusions.weak}, std::pair{"strong scaling", &conclusions.strong}}) {
    TableOfTimes table{called, {}};
    for (const auto& group : *groups)
      if (group.baseline != nullptr && group.subject == subject) {
        if (table.cells.empty()) table.cells.push_back(group.baseline);
        for (const auto& row : group.rows)
          if (row.cell->is_measured() && !row.is_baseline) table.cells.push_back(row.cell);
      }
    if (!table.cells.empty()) tables.push_back(std::move(table));
  }
  return tables;
}

/// How workers are joined, if it is the same for all rows of each table but differs between tables.
std::string joining_of_tables(const std::vector<TableOfTimes>& tables) {
  std::vector<std::string> said;
  std::set<std::string> layouts;
  for (const TableOfTimes& table : tables) {
    std::set<std::string> own;
    for (const analysis::Cell* cell : table.cells)
      if (const auto& record = cell->record(); !analysis::is_alone(record))
        own.insert(fmt::format("{} ({})", record.communication.communicator, record.communication.algorithm));
    if (own.size() != 1) continue;
    layouts.insert(*own.begin());
    said.push_back(fmt::format("in {} by {}", table.name, *own.begin()));
  }
  return layouts.size() < 2 ? "" : fmt::format("{}", fmt::join(said, ", "));
}

/// Cells of one table are compared by their verdicts; readers also compare tables (a baseline of 15.5 s in
/// one and of 25.9 s in the other, for other loader settings).
void warn_of_tables_with_other_settings(Document& document, const Conclusions& conclusions) {
  for (const auto& subject : conclusions.subjects) {
    const auto tables = tables_of_times(conclusions, subject.name);
    const std::string of_model = subject.name.empty() ? "" : " of " + subject.name;
    for (std::size_t i = 1; i < tables.size(); ++i) {
      const auto verdict = analysis::compare(tables[0].cells.front()->record(),
                                             tables[i].cells.front()->record(), analysis::Topic::tables);
      if (!verdict.comparable())
        document.warnings.push_back(
            fmt::format("The times of {}{} (here) must not be compared with those of {} (the baseline): {}.",
                        tables[i].name, of_model, tables[0].name, joined(verdict.refusals)));
    }
    if (const auto joining = joining_of_tables(tables); !joining.empty())
      document.warnings.push_back(
          fmt::format("The workers{} are not joined alike in all tables: {}.", of_model, joining));
  }
}

/// Warns first of all that the report of a stopped study covers only what was measured.
void warn_of_a_stopped_study(Document& document, const Conclusions& conclusions) {
  const auto [all, unmeasured] = conclusions.stopped_study();
  if (unmeasured > 0)
    document.warnings.push_back(fmt::format(
        "PARTIAL: the study was stopped with {} of {} not measured (repeats counted); the answers are of "
        "the others, and the same command goes on.",
        unmeasured, counted(all, "cell")));
}

void add_warnings_of_study(Document& document, const Conclusions& conclusions) {
  auto& warnings = document.warnings;
  warn_of_a_stopped_study(document, conclusions);
  const auto number_of = [&](auto claim) {
    return static_cast<long>(std::ranges::count_if(conclusions.cells, claim));
  };
  const auto all = static_cast<long>(conclusions.cells.size());
  if (std::ranges::any_of(conclusions.cells, &analysis::Cell::synthetic))
    warnings.push_back("The data is synthetic: times are real, accuracies say nothing about real images.");
  if (const long debug = number_of(&analysis::Cell::debug_build))
    warnings.push_back(
        fmt::format("{} of {} were measured with a build that is not optimised (marked debug): no "
                    "figure of them is a speed.",
                    debug, counted(all, "cell")));
  for (const bool on_gpus : {false, true}) {
    const auto is_over = [&](const auto& cell) {
      return cell.oversubscribed && cell.shares_gpus() == on_gpus;
    };
    if (const long over = number_of(is_over))
      warnings.push_back(fmt::format("{} of {} had {}; they are marked *.", over, counted(all, "cell"),
                                     std::ranges::find_if(conclusions.cells, is_over)->shares()));
  }
  // Counted by what was emulated, since a link of 1 ms says nothing about one of 50 us.
  std::map<std::string, long> emulated;
  for (const auto& cell : conclusions.cells)
    if (!cell.emulated.empty()) ++emulated[cell.emulated];
  for (const auto& [what, cells] : emulated)
    warnings.push_back(fmt::format(
        "EMULATED (marked emulated) in {} of {}: {}. Such times are those of a model of that hardware, "
        "not measured on it.",
        cells, counted(all, "cell"), what));
  if (std::ranges::any_of(conclusions.rows_of_scaling(),
                          [](const auto& one) { return one.row->verdict.shares_cores; }))
    warnings.push_back(
        "More workers shared the same cores (marked †): a worker had fewer threads than that of the "
        "baseline, so the ideal is not the number of workers.");
  warn_of_tables_with_other_settings(document, conclusions);
  const auto versions = distinct(conclusions.records, [](const Record& r) { return r.environment.version; });
  if (versions.size() > 1)
    warnings.push_back(fmt::format(
        "Measured by {} versions ({}): their repeats are not joined, what each scaled has its own baseline "
        "and line, and a ratio between two of them is remarked.",
        versions.size(), joined(versions)));
  const auto hosts = distinct(conclusions.records, [](const Record& r) { return r.environment.host; });
  if (hosts.size() > 1)
    warnings.push_back(fmt::format(
        "Measured on {} hosts ({}): their repeats are not joined, and a ratio between two of them describes "
        "the workers only where the hosts are alike.",
        hosts.size(), joined(hosts)));
  // Nobody asks a search or an evaluation for times.
  const bool any_times = !std::ranges::all_of(conclusions.records, answers_its_own);
  for (const auto& find : {analysis::paused, analysis::busy}) {
    const auto finding = any_times ? find(conclusions.records) : std::nullopt;
    if (!finding) continue;
    warnings.insert(warnings.begin(), finding->text + ".");  // the page shows the first outright
    warnings.front()[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(finding->text[0])));
  }
  for (const char* status : {"failed", "interrupted"}) {
    const auto number = std::ranges::count_if(conclusions.records, [&](const Record& record) {
      const bool is_said = record.status == "interrupted" && record.kind != "train";
      return record.status == status && !is_said;
    });
    if (number > 0) warnings.push_back(fmt::format("{} {}; see the end.", counted(number, "record"), status));
  }
  const auto wrong = std::ranges::count_if(conclusions.remarks,
                                           [](const Remark& remark) { return remark.finding.is_error; });
  if (wrong > 0)
    warnings.push_back(fmt::format(
        "Records contradict themselves ({}) and are left out of every answer and comparison: see 'How it was "
        "measured'.",
        counted(wrong, "finding")));
}

/// Does not repeat a definition that an earlier table of the section has.
void refer_to_earlier_definitions(Section& section) {
  std::map<std::string, std::string> title_of;
  for (Block& block : section.blocks) {
    auto* table = std::get_if<Table>(&block);
    if (table == nullptr || table->definition.empty()) continue;
    const auto [found, is_new] = title_of.try_emplace(table->definition, table->title);
    if (!is_new) table->definition = fmt::format("Definitions: as for '{}'.", found->second);
  }
}

void add_section(Document& document, std::optional<Section> section) {
  if (!section) return;
  refer_to_earlier_definitions(*section);
  document.sections.push_back(std::move(*section));
}

/// The records and options without paths of the user's machine.
std::pair<std::vector<Record>, BuildOptions> for_sharing(std::span<const Record> records,
                                                         BuildOptions options) {
  const auto home = home_here();
  options.command = without_homes(options.command, home);
  for (auto& remark : options.remarks) remark = without_paths(remark, home);
  for (auto& prediction : options.scored)
    for (auto& sentence : prediction.not_scored) sentence = without_paths(sentence, home);
  return {shareable(records, home), std::move(options)};
}

}  // namespace

Document build(std::span<const Record> as_measured, const BuildOptions& asked) {
  const auto [records, options] = for_sharing(as_measured, asked);
  Document document;
  document.title = options.title.empty() ? "Paceline report" : options.title;
  if (records.empty()) {
    document.warnings.push_back("There are no records: nothing was measured.");
    document.expectations = judge_bounds({}, options.bounds);
    return document;
  }
  const auto models = distinct(records, describe_model);
  const auto data = distinct(records, describe_data);
  if (options.title.empty())
    document.title = fmt::format("Paceline: {} on {}",
                                 joined(distinct(records, [](const Record& r) { return r.model.name; })),
                                 joined(distinct(records, measure::name_of_data)));
  std::vector<std::string> subject;
  for (const auto* const texts : {&models, &data})
    if (!texts->empty()) subject.push_back(fmt::format("{}", fmt::join(*texts, ", ")));
  document.subtitle = joined(subject);

  Conclusions conclusions = conclude(records, options.margin);
  conclusions.scored = options.scored;
  document.trust = text_about_checksums(records);
  document.warnings = options.remarks;
  add_warnings_of_study(document, conclusions);
  document.expectations = judge_bounds(conclusions, options.bounds);
  add_fact(document, "report made by", options.command);
  add_facts(document, records);
  if (std::ranges::all_of(records, is_of_collectives)) {
    // They have neither model nor data, and answer no question about a training.
    const auto ranks = distinct(records, [](const Record& r) { return counted(r.workers, "rank"); });
    if (options.title.empty()) document.title = "Paceline: collectives of " + joined(ranks);
    document.subtitle = counted(records.size(), "record");
    add_section(document, collectives_section(conclusions));
    add_section(document, gpus_section(conclusions));
    document.sections.push_back(collectives_circumstances(conclusions));
    return document;
  }
  if (std::ranges::all_of(records, answers_its_own)) {
    // Such a report has no line of circumstances that counts the records.
    subject.push_back(counted(records.size(), "record"));
    document.subtitle = joined(subject);
    for (Section& section : sections_of_own_answers(conclusions)) add_section(document, std::move(section));
    add_section(document, gpus_section(conclusions));
    document.sections.push_back(circumstances_section(conclusions));
    document.sections.back().is_folded = has_answers(document);
    return document;
  }
  add_predictions(conclusions, options.emulated);
  document.sections = answer_sections(conclusions);
  const std::size_t details = document.sections.size();
  const auto add_sections = [&](std::initializer_list<std::optional<Section> (*)(const Conclusions&)> all) {
    for (auto* const section : all) add_section(document, section(conclusions));
  };
  add_sections({scores_section, sweep_section, cause_section});
  add_section(document, scaling_section(conclusions, analysis::Mode::weak));
  add_section(document, scaling_section(conclusions, analysis::Mode::strong));
  add_sections({same_cores_section, ways_section, efficiency_section, breakdown_section, by_worker_section,
                gpus_section, bandwidth_section, traffic_section, collectives_section, converge_section,
                target_section, target_workers_section, search_section, evaluation_section,
                training_section});
  add_section(document, check_section(records));
  document.sections.push_back(circumstances_section(conclusions));
  const bool is_training = conclusions.subjects.size() == 1 && conclusions.cells.size() == 1 &&
                           conclusions.cells.front().kind == "train";
  for (std::size_t i = details; i < document.sections.size(); ++i)
    document.sections[i].is_folded = !is_training || document.sections[i].id != "training";
  add_circumstances(document, conclusions);
  document.trust = trust_of(conclusions);
  return document;
}

}  // namespace paceline::report
