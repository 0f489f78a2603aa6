#include "report/svg/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "report/terminal_text.h"
#include "report/text.h"

namespace paceline::report::svg {
namespace {

// The page's palette and signs (web/src/styles/theme.css, web/src/plots/marks.ts), so that both show a line
// alike. They are told apart with every common kind of colour blindness, and by their signs without colours.
constexpr std::array<std::string_view, 8> kColours{"#0b7a5c", "#2a6db0", "#c2510f", "#a2438a",
                                                   "#8b6d00", "#2487b4", "#835538", "#5b4fa2"};
constexpr std::array<std::string_view, 8> kSigns{
    "M0,-4A4,4 0 1 1 0,4A4,4 0 1 1 0,-4Z",
    "M-3.6,-3.6H3.6V3.6H-3.6Z",
    "M0,-4.8L4.7,3.5H-4.7Z",
    "M0,-5.2L4.2,0L0,5.2L-4.2,0Z",
    "M-1.6,-4.7H1.6V-1.6H4.7V1.6H1.6V4.7H-1.6V1.6H-4.7V-1.6H-1.6Z",
    "M0,4.8L4.7,-3.5H-4.7Z",
    "M0,-5.3L1.5,-1.7L5.2,-1.6L2.3,0.9L3.3,4.5L0,2.4L-3.3,4.5L-2.3,0.9L-5.2,-1.6L-1.5,-1.7Z",
    "M-4.7,-2.4L-2.4,-4.7L0,-2.2L2.4,-4.7L4.7,-2.4L2.2,0L4.7,2.4L2.4,4.7L0,2.2L-2.4,4.7L-4.7,2.4L-2.2,0Z"};

struct Phase {
  std::string_view word, colour;
};
/// What a part of a step is about, by a word of its name; the first that fits.
constexpr Phase kPhases[] = {{"efficiency", "#4483c4"}, {"forward", "#9cc5ea"},       {"backward", "#2f6cb0"},
                             {"update", "#0f7f61"},     {"copy", "#b3a6de"},          {"data", "#e0b83a"},
                             {"transfer", "#cc5220"},   {"communication", "#cc5220"}, {"gradient", "#cc5220"},
                             {"latency", "#f3b796"},    {"overlapped", "#f3b796"},    {"slowest", "#a2438a"},
                             {"rank", "#a2438a"},       {"exposed wait", "#a2438a"},  {"jitter", "#8cc3ac"},
                             {"evaluation", "#8cc3ac"}, {"checkpoint", "#835f45"},    {"waiting", "#835f45"},
                             {"sharing", "#2f6cb0"},    {"smaller batch", "#9cc5ea"}, {"compute", "#4483c4"},
                             {"kernel", "#4483c4"},     {"other", "#b0b6bc"}};

constexpr double kMargin = 8;
constexpr double kKeyRow = 17, kKeySign = 30, kKeyGap = 14;

/// The keys in rows that fit; sets `bottom` to their end.
std::string legend(const std::vector<Key>& keys, double top, double& bottom) {
  std::string out;
  double x = kMargin, y = top;
  for (const Key& key : keys) {
    const auto texts = lines_of(key.text, kWidth - 2 * kMargin - kKeySign);
    double width = 0;
    for (const auto& text : texts) width = std::max(width, text_width(text));
    if (x > kMargin && x + kKeySign + width > kWidth - kMargin) {
      x = kMargin;
      y += kKeyRow;
    }
    out +=
        fmt::format("<g transform=\"translate({:.1f},{:.1f})\">{}</g>\n", x + 12, y + kKeyRow / 2, key.sign);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      if (i > 0) y += kLine;
      out += text_at(x + kKeySign, y + kKeyRow / 2, "start", texts[i]);
    }
    x += kKeySign + width + kKeyGap;
  }
  bottom = keys.empty() ? top : y + kKeyRow;
  return out;
}

}  // namespace

std::string xml(std::string_view text) {
  std::string out = markup_text(base::visible(text));
  // The two code points that are valid UTF-8 and no characters of XML.
  for (const std::string_view bad : {"\xef\xbf\xbe", "\xef\xbf\xbf"})
    for (auto at = out.find(bad); at != std::string::npos; at = out.find(bad))
      out.replace(at, bad.size(), "?");
  return out;
}

double text_width(std::string_view text) {
  constexpr double kSize = 12;
  double width = 0;
  for (const char letter : text) {
    if ((static_cast<unsigned char>(letter) & 0xc0U) == 0x80U) continue;  // inside a letter of UTF-8
    const auto is_in = [letter](std::string_view some) {
      return some.find(letter) != std::string_view::npos;
    };
    width += is_in("ijl.,:;'|![] ()ftI/")    ? 0.3
             : is_in("mwMW%")                ? 0.9
             : is_in("ABCDEGHKNOPQRSUVXYZ&") ? 0.71
                                             : 0.56;
  }
  constexpr double kWider = 1.12;  // of DejaVu Sans, where there is no Helvetica
  return kSize * kWider * width;
}

std::vector<std::string> lines_of(std::string_view text, double width) {
  std::vector<std::string> lines;
  for (const auto& word : words_of(std::string(text)))
    if (!lines.empty() && text_width(lines.back() + " " + word) <= width)
      lines.back() += " " + word;
    else
      lines.push_back(word);
  return lines.empty() ? std::vector<std::string>{""} : lines;
}

std::string text_at(double x, double y, std::string_view anchor, std::string_view text,
                    std::string_view attributes) {
  constexpr double kBelow = 4.2;  // from the middle of a line to its letters' feet
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}{}>{}</text>\n", x, y + kBelow,
                     anchor, attributes.empty() ? "" : " ", attributes, xml(text));
}

std::size_t Colours::place(const std::string& name) {
  return places_.try_emplace(name, places_.size()).first->second;
}

std::string_view Colours::of_phase(const std::string& name) {
  for (const auto& [word, colour] : kPhases)
    if (base::lower_case(name).find(word) != std::string::npos) return colour;
  return colour_at(place(name));
}

std::string_view colour_at(std::size_t place) { return kColours[place % kColours.size()]; }

std::string sign_at(std::size_t place, std::string_view colour, Shape shape) {
  std::string out =
      fmt::format("<path d=\"{}\" fill=\"{}\" stroke=\"{}\" stroke-width=\"{}\"/>",
                  kSigns[place % kSigns.size()], shape == Shape::full ? colour : "#ffffff",
                  shape == Shape::full ? "#ffffff" : colour, shape == Shape::full ? "0.8" : "1.6");
  if (shape == Shape::dotted) out += fmt::format("<circle r=\"1.4\" fill=\"{}\"/>", colour);
  if (shape == Shape::struck)
    out += fmt::format("<path d=\"M-6,6L6,-6\" stroke=\"{}\" stroke-width=\"1.4\"/>", colour);
  return out;
}

Key box_key(std::string_view colour, std::string text, bool is_striped) {
  return {
      fmt::format(
          "<rect x=\"-7\" y=\"-6\" width=\"14\" height=\"12\" fill=\"{}\"/>{}", colour,
          is_striped ? "<rect x=\"-7\" y=\"-6\" width=\"14\" height=\"12\" fill=\"url(#stripes)\"/>" : ""),
      std::move(text)};
}

std::string file_of(const Picture& picture) {
  double bottom = 0;
  const std::string keys = legend(picture.keys, picture.height + 4, bottom);
  const double height = std::ceil(bottom + kMargin);
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" role=\"img\" "
      "font-family=\"Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif\" font-size=\"12\" "
      "fill=\"#191d22\">\n"
      "<title>{2}</title>\n<desc>{3}</desc>\n"
      "<defs><pattern id=\"stripes\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\" "
      "patternTransform=\"rotate(45)\"><path d=\"M0,0V5\" stroke=\"#ffffff\" stroke-width=\"2.4\"/></pattern>\n"
      "<pattern id=\"hatch\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\" "
      "patternTransform=\"rotate(45)\"><path d=\"M0,0V7\" stroke=\"#bfc2ba\" stroke-width=\"1.5\"/></pattern></defs>\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n{4}<g class=\"legend\">\n{5}</g>\n</svg>\n",
      kWidth, height, xml(picture.title), xml(picture.description), picture.body, keys);
}

}  // namespace paceline::report::svg
