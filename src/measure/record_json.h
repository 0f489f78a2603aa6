#pragma once

/// Makes a record of unknown origin safe to display, and says why a file is none.

#include <string>

#include "measure/record.h"

namespace paceline::measure {

/// Escapes every text of the record with base::visible(), including keys of its maps, so that reports, tables
/// and sentences contain no control characters.
void make_visible(Record& record);

/// What a text without the schema of records is: the end of a sentence, as "is whole JSON without the key
/// 'schema', by which records are known".
[[nodiscard]] std::string why_no_record(const std::string& text);

}  // namespace paceline::measure
