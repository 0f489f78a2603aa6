#pragma once

/// A record that somebody else wrote, made fit to be shown.

#include "measure/record.h"

namespace paceline::measure {

/// Every text of the record as base::visible() shows it, keys of its maps included: reports, tables and
/// sentences made of it hold no control character.
void make_visible(Record& record);

}  // namespace paceline::measure
