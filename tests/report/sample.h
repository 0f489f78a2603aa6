#pragma once

/// A document with one of everything, for the renderers' tests and for the page's development.

#include "report/document.h"

namespace paceline::report {

[[nodiscard]] Document sample_document();
/// Its sections "answer" and "evidence".
[[nodiscard]] Section sample_answer();
[[nodiscard]] Section sample_evidence();

}  // namespace paceline::report
