#include "base/error.h"
#include "report/compress.h"
#include "report/document.h"
#include "report/page.h"

namespace paceline::report {
namespace {

/// Position for the data: directly after the script tag that names it. Bundlers reorder attributes and drop
/// quotes, so any spelling of the tag is found.
std::size_t place_of_data(const std::string& page) {
  for (std::size_t at = page.find("<script"); at != std::string::npos; at = page.find("<script", at + 1)) {
    const std::size_t end = page.find('>', at);
    if (end == std::string::npos) break;
    const std::string tag = page.substr(at, end - at);
    if (tag.find("paceline-data") != std::string::npos && tag.find("application/json") != std::string::npos)
      return end + 1;
  }
  return std::string::npos;
}

}  // namespace

std::string fill_page(const std::string& page, const std::string& json) {
  const std::size_t begin = place_of_data(page);
  base::expects(begin != std::string::npos, "the page has a script paceline-data for the report's JSON");
  const std::size_t end = page.find("</script", begin);
  base::expects(end != std::string::npos, "the page's script paceline-data is closed");
  std::string out = page.substr(0, begin);
  out.reserve(page.size() + json.size());
  for (const char letter : json) {
    if (letter == '<')
      out += "\\u003c";
    else
      out += letter;
  }
  return out.append(page, end);
}

std::string page_of(const std::string& json) {
  // The placeholder for the built page reads only plain JSON.
  return fill_page(page_template(), page_is_built() ? compressed(json) : json);
}

std::string to_html(const Document& document) { return page_of(to_json(document)); }

}  // namespace paceline::report
