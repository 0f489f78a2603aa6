#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <new>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "base/topology.h"
#include "cli/commands/commands.h"
#include "cli/screen/screen.h"
#include "data/image/inspect.h"
#include "data/image/scan.h"
#include "data/image/tar.h"
#include "data/shards/shards.h"
#include "engine/kernel_cache.h"
#include "measure/events.h"
#include "measure/record.h"
#include "measure/record_file.h"
#include "measure/record_json.h"
#include "train/checkpoint/checkpoint_header.h"
#include "train/checkpoint/safetensors.h"

namespace paceline::cli {

// Checks whether a file that this program wrote is undamaged.

enum class FileState {
  ok,       ///< every byte matches a checksum, or the whole structure is valid if the format has none
  damaged,  ///< it has changed, or cannot be read
  unknown,  ///< of a kind that cannot be checked
};
[[nodiscard]] const char* name(FileState state);

struct FileCheck {
  std::filesystem::path path;
  FileState state = FileState::unknown;
  std::string why;  ///< what was checked, or what is wrong; one line
};

/// Checks checkpoints, records, events, manifests (also of shards), packs (tar archives of images), kernel
/// caches, and links to them.
///
/// Cost     reads the file once; decodes every image of a pack
/// Errors   none: a file that cannot be read counts as damaged
[[nodiscard]] FileCheck verify_file(const std::filesystem::path& path);

/// Checks all files in `directory` and below that verify_file() knows, ordered by path. `others` counts the
/// rest.
[[nodiscard]] std::vector<FileCheck> verify_directory(const std::filesystem::path& directory,
                                                      std::size_t& others);

namespace {

namespace fs = std::filesystem;

struct Found {
  FileState state = FileState::unknown;
  std::string why;
};

Found verify_checkpoint(const fs::path& path) {
  const auto sum = train::check_checksum(path);
  const train::SafetensorsFile file(path);
  const auto format = train::text_in(file, "format");
  if (!train::is_checkpoint_format(format)) {
    if (sum == train::Checksum::wrong) return {FileState::damaged, "its bytes do not match its SHA-256"};
    return {FileState::unknown,
            "a safetensors file of another program: its header is complete, its arrays have no checksum"};
  }
  const auto checkpoint = train::open_checkpoint(path);
  const auto said = fmt::format("checkpoint of update {}", train::number_in(checkpoint, "update"));
  (void)train::validation_in(checkpoint);
  (void)train::guard_in(checkpoint);
  (void)train::data_in(checkpoint);
  if (!train::is_summed(checkpoint))
    return {FileState::unknown, said + ", of a version without checksums: its header is complete"};
  return {FileState::ok,
          fmt::format("{}, SHA-256 right{}", said,
                      train::says_it_is_good(checkpoint) ? "" : "; its loss was not checked to be good")};
}

Found verify_json(const fs::path& path) {
  const auto text = measure::record_text(path);
  const bool is_named_record = path.filename() == "record.json" || path.parent_path().filename() == "records";
  if (text.find("\"paceline-record-") == std::string::npos)
    return {is_named_record ? FileState::damaged : FileState::unknown,
            "not a record: it " + measure::why_no_record(text)};
  const auto record = measure::record_from_json(text, "the record");
  const auto said = fmt::format("record of {} ({})", record.kind, record.status);
  if (!measure::says_it_has_checksum(text))
    return {FileState::unknown, said + ", of a version without checksums: it can be read"};
  return {FileState::ok, said + ", SHA-256 right"};
}

Found verify_events(const fs::path& path) {
  if (!std::ifstream(path))
    base::fail(base::ErrorKind::data, "{}: cannot be read: {}", path.string(), std::strerror(errno));
  const auto file = fs::canonical(path);  // a tail follows no links
  measure::EventTail tail(file);
  std::size_t number = 0;
  for (auto lines = tail.read(); !lines.empty(); lines = tail.read())
    for (const auto& line : lines) {
      ++number;
      if (!measure::event_from_json(line.text))
        return {FileState::damaged, fmt::format("line {} is not an event", number)};
    }
  if (const auto at = tail.damaged_at())
    return {FileState::damaged,
            fmt::format("the line that begins at byte {} has more than {} MiB, as no event has", *at,
                        measure::EventTail::kMostLineBytes >> 20)};
  if (std::error_code gone; static_cast<std::uintmax_t>(tail.offset()) < fs::file_size(file, gone))
    return {FileState::ok,
            fmt::format("{} events; the last line was cut short, as a kill leaves it", number)};
  return {FileState::ok, fmt::format("{} events; they have no checksum", number)};
}

Found verify_manifest(const fs::path& path) {
  const auto scan = data::manifest_from(base::read_file(path));
  if (!scan)
    return {FileState::damaged,
            "it is not a complete list of images; 'paceline data manifest' writes a new one"};
  return {FileState::ok, fmt::format("list of {} images; it has no checksum", scan->listing.size())};
}

Found verify_kernels(const fs::path& path) {
  const auto text = base::read_file(path);
  const auto table = engine::kernel_table_from(text);
  if (table)
    return {FileState::ok,
            fmt::format("kernel cache with {} entries; it has no checksum", table->algorithms.size())};
  return {FileState::damaged, engine::is_kernel_table(text)
                                  ? "a kernel cache that was cut short or changed; runs measure again"
                                  : "it is not a kernel cache; runs measure again"};
}

Found verify_pack(const fs::path& path) {
  const data::TarStore store(path);
  std::vector<std::uint32_t> all(static_cast<std::size_t>(store.size()));
  std::iota(all.begin(), all.end(), 0u);
  if (all.empty()) return {FileState::unknown, "a tar archive without images"};
  const auto broken = data::find_broken(store, all, base::usable_cores());
  if (!broken.empty())
    return {FileState::damaged, fmt::format("{} of {} images do not decode, the first: {}: {}", broken.size(),
                                            all.size(), broken.front().name, broken.front().reason)};
  return {FileState::ok, fmt::format("{} images decode; they have no checksum", all.size())};
}

Found verify_shard_manifest(const fs::path& path) {
  const auto index = data::shard_index_from(base::read_file(path));
  if (!index)
    return {FileState::damaged,
            "its bytes do not match its SHA-256, or it is of another version; runs make it anew"};
  return {FileState::ok, fmt::format("a list of {} samples in {} shards, as its SHA-256 says",
                                     index->members.size(), index->shards.size())};
}

/// The check for files with that name; null if there is none.
Found (*check_of(const fs::path& path))(const fs::path&) {
  const auto name = path.filename().string();
  const auto ending = path.extension();
  if (ending == ".safetensors") return verify_checkpoint;
  if (ending == ".json") return verify_json;
  if (name == measure::kEventsFile) return verify_events;
  if (name == data::kManifestName) return verify_manifest;
  if (ending == ".tar") return verify_pack;
  if (name.starts_with(data::kShardManifest) && ending == ".index") return verify_shard_manifest;
  if (name.starts_with("kernels-") && ending == ".txt") return verify_kernels;
  return nullptr;
}

void print_checks(const std::vector<FileCheck>& checks) {
  for (const auto& check : checks)
    print(fmt::format("{:<8} {}: {}\n", name(check.state), base::visible(check.path.string()),
                      base::visible(check.why)));
}

void print_as_json(const std::vector<FileCheck>& checks) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& check : checks)
    list.push_back({{"path", check.path.string()}, {"state", name(check.state)}, {"why", check.why}});
  std::puts(list.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
}

}  // namespace

const char* name(FileState state) {
  switch (state) {
    case FileState::ok:
      return "ok";
    case FileState::damaged:
      return "damaged";
    case FileState::unknown:
      break;
  }
  return "unknown";
}

FileCheck verify_file(const fs::path& path) {
  FileCheck result{.path = path, .state = FileState::damaged, .why = {}};
  try {
    std::error_code lost;
    if (!fs::exists(path, lost)) {
      result.why = fs::is_symlink(path, lost) ? "a broken link" : "there is no such file";
      return result;
    }
    const auto check = check_of(path);
    if (check == nullptr || !fs::is_regular_file(path, lost)) {
      result.state = FileState::unknown;
      result.why = check == nullptr ? "a kind of file that is not checked" : "no file";
      return result;
    }
    auto found = check(path);
    result.state = found.state;
    result.why = std::move(found.why);
  } catch (const base::Error& error) {
    result.why = error.what();
    if (const auto place = path.string() + ": "; result.why.starts_with(place))
      result.why.erase(0, place.size());
  } catch (const fs::filesystem_error& error) {
    result.why = error.code().message();
  } catch (const std::bad_alloc&) {
    result.why = "it needs more memory than there is; is it what its name says?";
  }
  return result;
}

std::vector<FileCheck> verify_directory(const fs::path& directory, std::size_t& others) {
  std::vector<fs::path> paths;
  for (auto at = fs::recursive_directory_iterator(directory, fs::directory_options::skip_permission_denied);
       at != fs::recursive_directory_iterator(); ++at) {
    std::error_code unknown;
    if (at->is_directory(unknown) && !at->is_symlink(unknown)) continue;
    if (check_of(at->path()) != nullptr)
      paths.push_back(at->path());
    else
      ++others;
  }
  std::sort(paths.begin(), paths.end());
  std::vector<FileCheck> checks;
  for (const auto& path : paths) checks.push_back(verify_file(path));
  return checks;
}

int verify_command(const Settings& settings) {
  std::vector<FileCheck> all;
  std::size_t others = 0;
  for (const auto& path : settings.verify) {
    std::error_code unknown;
    auto checks = fs::is_directory(path, unknown) ? verify_directory(path, others)
                                                  : std::vector<FileCheck>{verify_file(path)};
    if (!settings.json) print_checks(checks);
    all.insert(all.end(), std::make_move_iterator(checks.begin()), std::make_move_iterator(checks.end()));
  }
  if (settings.json) print_as_json(all);
  if (others > 0 && !settings.json)
    print(fmt::format("{} other files are of kinds that are not checked\n", others));
  std::fflush(stdout);
  const auto damaged =
      std::ranges::count_if(all, [](const FileCheck& check) { return check.state == FileState::damaged; });
  if (damaged > 0)
    base::fail(base::ErrorKind::data,
               "{} of {} files are damaged; take earlier checkpoints, and measure or copy the rest again",
               damaged, all.size());
  return 0;
}

}  // namespace paceline::cli
