#include "report/names.h"

#include <algorithm>

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

std::string_view name(Certainty certainty) {
  switch (certainty) {
    case Certainty::decided:
      return "decided";
    case Certainty::tie:
      return "tie";
    case Certainty::not_decided:
      return "not_decided";
    case Certainty::careful:
      return "careful";
    case Certainty::not_measured:
      return "not_measured";
  }
  return "not_measured";
}

std::string_view sign_of(Certainty certainty) {
  switch (certainty) {
    case Certainty::decided:
      return "✓";
    case Certainty::tie:
      return "≈";
    case Certainty::not_decided:
      return "?";
    case Certainty::careful:
      return "!";
    case Certainty::not_measured:
      return "–";
  }
  return "–";
}

std::string_view name(Comparison::Word word) {
  switch (word) {
    case Comparison::Word::improved:
      return "improved";
    case Comparison::Word::regressed:
      return "regressed";
    case Comparison::Word::no_change:
      return "no_change";
    case Comparison::Word::within_noise:
      return "within_noise";
    case Comparison::Word::not_compared:
      return "not_compared";
  }
  return "not_compared";
}

namespace {

std::string with_blanks(std::string_view name) {
  std::string text(name);
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

}  // namespace

std::string text_of(Certainty certainty) { return with_blanks(name(certainty)); }
std::string text_of(Comparison::Word word) { return with_blanks(name(word)); }

}  // namespace paceline::report
