#include "measure/output_file.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/file.h"

namespace paceline::measure {
namespace {

namespace fs = std::filesystem;

/// Says what a file is that must not be overwritten, to follow the word "is"; nullopt if it may be
/// overwritten.
std::optional<std::string> precious(const fs::path& file) {
  if (file.extension() == ".safetensors") return "a checkpoint or a model's weights";
  if (file.extension() == ".toml") return "a recipe or a model file";
  if (file.extension() == ".jsonl") return "a run's events";
  std::ifstream stream(file, std::ios::binary);
  std::string begin(1 << 16, '\0');
  stream.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  begin.resize(static_cast<std::size_t>(stream.gcount()));
  if (begin.find("\"paceline-record-") != std::string::npos) return "a run's record";
  if (begin.find('\0') != std::string::npos) return "a binary file, which this option never writes";
  return std::nullopt;
}

}  // namespace

void require_output(const fs::path& file, std::string_view option) {
  base::require_directory_of(file, option);
  std::error_code unknown;
  if (file.empty() || !fs::is_regular_file(file, unknown)) return;
  if (const auto what = precious(file))
    base::fail(base::ErrorKind::data,
               "{} {}: the file that exists there is {}, and would be lost; give another file", option,
               file.string(), *what);
}

}  // namespace paceline::measure
