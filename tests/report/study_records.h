#pragma once

/// Records of a whole study (sweep, weak and strong scaling, convergence) as the report's tests want them,
/// and ways to find a block of a document.

#include <string>
#include <variant>
#include <vector>

#include "golden/records.h"
#include "report/document.h"

namespace paceline::report {

/// A sweep until memory and then data end, with its knee at 64; weak and strong scaling of 1, 2 and 4
/// workers, of which 4 share the cores; a baseline, a large batch and one remedy, two seeds each.
std::vector<measure::Record> study();

/// The report of some records as Markdown.
std::string text_of(const std::vector<measure::Record>& records);

/// All tables, or all plots, of a document.
template <typename Kind>
std::vector<const Kind*> all(const Document& document) {
  std::vector<const Kind*> found;
  for (const Section& section : document.sections)
    for (const Block& block : section.blocks)
      if (const auto* one = std::get_if<Kind>(&block)) found.push_back(one);
  return found;
}

template <typename Kind>
const Kind* find(const Document& document, const std::string& id) {
  for (const Kind* one : all<Kind>(document))
    if (one->id == id) return one;
  return nullptr;
}

}  // namespace paceline::report
