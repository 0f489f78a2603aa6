#include "report/names.h"

namespace paceline::report {

std::string_view name(Format format) {
  switch (format) {
    case Format::text:
      return "text";
    case Format::integer:
      return "integer";
    case Format::fixed1:
      return "fixed1";
    case Format::fixed2:
      return "fixed2";
    case Format::fixed3:
      return "fixed3";
    case Format::percent1:
      return "percent1";
    case Format::seconds:
      return "seconds";
    case Format::milliseconds:
      return "milliseconds";
    case Format::bytes:
      return "bytes";
    case Format::rate:
      return "rate";
    case Format::scientific:
      return "scientific";
  }
  return "text";
}

std::string_view name(PlotKind kind) {
  switch (kind) {
    case PlotKind::line:
      return "line";
    case PlotKind::stacked_bar:
      return "stacked_bar";
  }
  return "line";
}

std::string_view name(Paragraph::Tone tone) {
  switch (tone) {
    case Paragraph::Tone::plain:
      return "plain";
    case Paragraph::Tone::finding:
      return "finding";
    case Paragraph::Tone::warning:
      return "warning";
  }
  return "plain";
}

}  // namespace paceline::report
