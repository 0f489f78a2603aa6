#pragma once

/// Makes a record of unknown origin safe to display.

#include "measure/record.h"

namespace paceline::measure {

/// Escapes every text of the record with base::visible(), including keys of its maps, so that reports, tables
/// and sentences contain no control characters.
void make_visible(Record& record);

}  // namespace paceline::measure
