#pragma once

/// The sections of a report, in its order. Each is a pure function of the conclusions, and returns nothing if
/// the records do not answer its question.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/conclusions.h"
#include "report/document.h"
#include "table/table.h"

namespace paceline::report {

/// A sentence on where and how long steps wait for data, and what would help; nothing if none waits.
[[nodiscard]] std::optional<Paragraph> loader_warning(const Conclusions& conclusions);

/// Nothing if no record knows enough about its loaders.
[[nodiscard]] std::optional<Table> loader_table(const Conclusions& conclusions);

/// Which batch size: throughput curve, knee, where memory or data end.
[[nodiscard]] std::optional<Section> sweep_section(const Conclusions& conclusions);
/// Why one batch is faster than another: the ledger of a sweep's steps, the rates at which they compute, an
/// epoch without data loading.
[[nodiscard]] std::optional<Section> cause_section(const Conclusions& conclusions);
/// What the workers exchange in a step: gradients, statistics, padding, votes; what each --bn adds.
[[nodiscard]] std::optional<Section> traffic_section(const Conclusions& conclusions);
/// How many workers (table 1 of the mode).
[[nodiscard]] std::optional<Section> scaling_section(const Conclusions& conclusions, analysis::Mode mode);
/// The same cores as threads of one worker or as several workers, if both were measured on the processor.
[[nodiscard]] std::optional<Section> same_cores_section(const Conclusions& conclusions);
/// Threads, processes or data-parallel, if the same training was measured in several of these ways.
[[nodiscard]] std::optional<Section> ways_section(const Conclusions& conclusions);
/// Which worker is slow, and what each waits for, sends, and needs of memory.
[[nodiscard]] std::optional<Section> by_worker_section(const Conclusions& conclusions);
/// The state of the GPUs: utilisation and busy share, memory, power, images per joule, clocks, reasons for
/// throttling, and faults.
[[nodiscard]] std::optional<Section> gpus_section(const Conclusions& conclusions);
/// Where the time goes (table 2): the ledger per step, and the residual with its parts.
[[nodiscard]] std::optional<Section> breakdown_section(const Conclusions& conclusions);
/// Where the efficiency goes: the loss of each row of scaling in parts that add up, and what would reduce
/// them.
[[nodiscard]] std::optional<Section> efficiency_section(const Conclusions& conclusions);
/// What more workers than were measured would do, a section for each subject that says it.
[[nodiscard]] std::vector<Section> prediction_sections(const Conclusions& conclusions);
/// Predictions that were given, and how right they were.
[[nodiscard]] std::optional<Section> scores_section(const Conclusions& conclusions);
/// The figures of the all-reduce (table 3).
[[nodiscard]] std::optional<Section> bandwidth_section(const Conclusions& conclusions);
/// The figures of collectives alone (table of `comm`).
[[nodiscard]] std::optional<Section> collectives_section(const Conclusions& conclusions);
/// For records of collectives alone, which have no settings of a training and no steps: their notes.
[[nodiscard]] Section collectives_circumstances(const Conclusions& conclusions);
/// Whether `record` has collectives and no training.
[[nodiscard]] bool is_of_collectives(const measure::Record& record);
/// What a large batch costs in accuracy.
[[nodiscard]] std::optional<Section> converge_section(const Conclusions& conclusions);
/// How many steps each batch needs to a target, and the curve through them.
[[nodiscard]] std::optional<Section> target_section(const Conclusions& conclusions);
/// With how many workers a target is reached soonest and cheapest.
[[nodiscard]] std::optional<Section> target_workers_section(const Conclusions& conclusions);
/// Which configuration a search found best.
[[nodiscard]] std::optional<Section> search_section(const Conclusions& conclusions);
/// What evaluated checkpoints get wrong: by class, confusions, mistakes. Of the first the blocks have these
/// ids.
inline constexpr const char* kConfusion = "evaluation-confusion";
inline constexpr const char* kClasses = "evaluation-by-class";
inline constexpr const char* kMistakes = "evaluation-mistakes";
[[nodiscard]] std::optional<Section> evaluation_section(const Conclusions& conclusions);
/// Epochs of trainings: loss and accuracy.
[[nodiscard]] std::optional<Section> training_section(const Conclusions& conclusions);
/// What was run, with which settings, and faults of single records.
[[nodiscard]] Section circumstances_section(const Conclusions& conclusions);
/// How far to trust the figures: how wide the intervals are, whether the study was stopped or a quick one,
/// and how many records carry no checksum; "" if nothing is to be said.
[[nodiscard]] std::string trust_of(const Conclusions& conclusions);
/// The part about checksums, "" if all records have one.
[[nodiscard]] std::string text_about_checksums(std::span<const measure::Record* const> records);
[[nodiscard]] std::string text_about_checksums(std::span<const measure::Record> records);

/// What is right and wrong in a table: findings with the printed figure beside the corrected one.
[[nodiscard]] Section check_section(const table::Table& table);
/// The same for records, compared with their own ledgers and each other; nothing if there is no error or
/// warning.
[[nodiscard]] std::optional<Section> check_section(std::span<const measure::Record> records);
/// Where the time of a table's rows goes, with "unknown" parts; nothing if no row has a part.
[[nodiscard]] std::optional<Section> table_parts_section(const table::Table& table);

}  // namespace paceline::report
