#pragma once

/// Sound tables of other kinds than a scaling study, and what a careful author may add to or leave out of
/// one.

#include <cstdint>

#include "check/sound.h"

namespace paceline::check::sound {

/// All-reduce over message sizes, as a benchmark of collectives prints it: latency, a link, perhaps a
/// reduction in the switch, any unit, algbw or busbw or bytes sent.
[[nodiscard]] Table message_table(Draw& draw);
/// One number of workers, several batches: the bytes of an epoch fall as its steps do. Parts, bandwidth.
[[nodiscard]] Table batch_table(Draw& draw);
/// Accuracies over seeds, batches and learning rates, counted on a test set, with losses that fit.
[[nodiscard]] Table quality_table(Draw& draw);
/// Repeats of one or two programs, interleaved, with their mean and a spread that is what it is called.
[[nodiscard]] Table repeat_table(Draw& draw);
/// Epochs and runs of one study, with steps of the run.
[[nodiscard]] Table run_table(Draw& draw);

/// Adds what is sound (flops and peak, settings, a link, words, further models and precisions with baselines
/// of their own, a note of nodes) and takes columns and cells away: what is not known cannot be wrong.
void vary(Draw& draw, SoundTable& sound);

/// One of all of these.
[[nodiscard]] Table any_table(std::uint64_t seed);

/// Sets a cell to "not known" in all rows.
void forget(Table& table, std::initializer_list<Column> columns);

}  // namespace paceline::check::sound
