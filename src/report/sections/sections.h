#pragma once

/// The sections of a report, in its order. Each is a pure function of the conclusions; nothing where the
/// records have nothing to say to its question.

#include <optional>
#include <span>

#include "report/conclusions.h"
#include "report/document.h"
#include "table/table.h"

namespace paceline::report {

/// The users' five questions, answered in sentences with numbers, or said not to have been measured.
[[nodiscard]] Section summary_section(const Conclusions& conclusions);
/// Which batch size: throughput curve, knee, where memory or data ends.
[[nodiscard]] std::optional<Section> sweep_section(const Conclusions& conclusions);
/// Why a batch is faster than another: the ledger of a sweep's steps, what they reach of the measured peaks,
/// an epoch without data loading.
[[nodiscard]] std::optional<Section> cause_section(const Conclusions& conclusions);
/// What the workers exchange in a step: gradients, statistics, padding, votes; what each --bn adds.
[[nodiscard]] std::optional<Section> travels_section(const Conclusions& conclusions);
/// How many workers (table 1 of the mode).
[[nodiscard]] std::optional<Section> scaling_section(const Conclusions& conclusions, analysis::Mode mode);
/// The same cores as threads of one worker or as workers, where both were measured.
[[nodiscard]] std::optional<Section> same_cores_section(const Conclusions& conclusions);
/// Threads, processes or data-parallel, where the same training was measured in several of these ways.
[[nodiscard]] std::optional<Section> ways_section(const Conclusions& conclusions);
/// Which worker is slow, and what each waits for, sends and holds.
[[nodiscard]] std::optional<Section> by_worker_section(const Conclusions& conclusions);
/// What the GPUs were at: utilisation and busy share, memory, power, images per joule, clocks, what held them
/// back, and what is wrong with them.
[[nodiscard]] std::optional<Section> gpus_section(const Conclusions& conclusions);
/// Where the time goes (table 2): the ledger a step, and the residual with what explains it.
[[nodiscard]] std::optional<Section> breakdown_section(const Conclusions& conclusions);
/// Where the efficiency goes: the loss of each row of scaling in parts that add up, and what would save them.
[[nodiscard]] std::optional<Section> efficiency_section(const Conclusions& conclusions);
/// What the all-reduce gives (table 3).
[[nodiscard]] std::optional<Section> bandwidth_section(const Conclusions& conclusions);
/// What collectives give alone (table of `comm`).
[[nodiscard]] std::optional<Section> collectives_section(const Conclusions& conclusions);
/// Of records of collectives alone, which have no settings of a training and no steps: their notes.
[[nodiscard]] Section collectives_circumstances(const Conclusions& conclusions);
/// Whether `record` holds collectives and no training.
[[nodiscard]] bool is_of_collectives(const measure::Record& record);
/// What the accuracy pays.
[[nodiscard]] std::optional<Section> converge_section(const Conclusions& conclusions);
/// Which configuration a search found best.
[[nodiscard]] std::optional<Section> search_section(const Conclusions& conclusions);
[[nodiscard]] bool is_of_search(const measure::Record& record);
/// What evaluated checkpoints get wrong: by class, confusions, mistakes.
[[nodiscard]] std::optional<Section> evaluation_section(const Conclusions& conclusions);
[[nodiscard]] bool is_of_evaluation(const measure::Record& record);
/// Epochs of trainings: loss and accuracy.
[[nodiscard]] std::optional<Section> training_section(const Conclusions& conclusions);
/// What was run, under which settings, and what the records get wrong by themselves.
[[nodiscard]] Section circumstances_section(const Conclusions& conclusions);

/// What of a table holds and what does not: findings with the printed figure beside the corrected one.
[[nodiscard]] Section check_section(const table::Table& table);
/// The same of records, against their own ledgers and each other; nothing where no error or warning was
/// found.
[[nodiscard]] std::optional<Section> check_section(std::span<const measure::Record> records);
/// Where the time of a table's rows goes, with "unknown" where nobody knows; nothing where no row has a part.
[[nodiscard]] std::optional<Section> table_parts_section(const table::Table& table);

}  // namespace paceline::report
