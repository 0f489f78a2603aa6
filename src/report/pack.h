#pragma once

#include <string>

namespace paceline::report {

/// The JSON of a report as a page carries it: the same values with nothing written twice, about 60 % of the
/// size. Every other reader is given the plain JSON (document.h, to_json); web/src/data/unpack.ts restores
/// it.
///
/// {"schema": "paceline-packed-1", "shapes": [shape], "values": [packed], "report": packed}
///
/// A packed value is
///   number, true, false, null           itself
///   "text"                              itself; a text that begins with ~ is written with one ~ more
///   "~N"                                values[N], packed
///   ["~:N", value, ..]                  an object of shapes[N]
///   ["~*", value, count, value, ..]     a list by its runs: each value so many times
///   ["~[", list, [index, ..]]           elements of another list, such as rows of the table of all cells
///   [value, ..]                         a list
/// and a shape lists the names of its objects' fields in order: "name", whose value stands in the object, or
/// ["name", value], the same in all of them.
///
/// Requires: `json` is JSON. Cost: a few passes over it; 0.1 s for a report of 2 MB.
[[nodiscard]] std::string packed(const std::string& json);

}  // namespace paceline::report
