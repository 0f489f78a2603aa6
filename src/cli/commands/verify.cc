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
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "base/topology.h"
#include "base/word_of.h"
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
namespace {

namespace fs = std::filesystem;

enum class FileState {
  ok,       ///< every byte matches a checksum, or the whole structure is valid if the format has none
  damaged,  ///< it has changed, or cannot be read
  unknown,  ///< of a kind that cannot be checked
};

struct Found {
  FileState state = FileState::unknown;
  std::string why;  ///< what was checked, or what is wrong; one line
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
    base::fail(ErrorKind::data, "{}: cannot be read: {}", path.string(), std::strerror(errno));
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

/// Checks checkpoints, records, events, manifests (also of shards), packs (tar archives of images), kernel
/// caches, and links to them. Reads the file once; decodes every image of a pack.
///
/// Errors   none: a file that cannot be read counts as damaged
Found verify_file(const fs::path& path) {
  try {
    std::error_code lost;
    if (!base::is_there(path))
      return {FileState::damaged, fs::is_symlink(path, lost) ? "a broken link" : "there is no such file"};
    const auto check = check_of(path);
    if (check == nullptr) return {FileState::unknown, "a kind of file that is not checked"};
    return base::is_file(path) ? check(path) : Found{FileState::unknown, "no file"};
  } catch (const base::Error& error) {
    std::string why = error.what();
    if (const auto place = path.string() + ": "; why.starts_with(place)) why.erase(0, place.size());
    return {FileState::damaged, why};
  } catch (const fs::filesystem_error& error) {
    return {FileState::damaged, error.code().message()};
  } catch (const std::bad_alloc&) {
    return {FileState::damaged, "it needs more memory than there is; is it what its name says?"};
  }
}

/// `path`, or all files below this directory that have a check, ordered by path; `others` counts the rest.
std::vector<fs::path> files_to_check(const fs::path& path, std::size_t& others) {
  std::error_code unknown;
  if (!base::is_folder(path)) return {path};
  std::vector<fs::path> files;
  for (const auto& entry :
       fs::recursive_directory_iterator(path, fs::directory_options::skip_permission_denied)) {
    if (entry.is_directory(unknown) && !entry.is_symlink(unknown)) continue;
    if (check_of(entry.path()) != nullptr)
      files.push_back(entry.path());
    else
      ++others;
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace

int verify_command(const Settings& settings) {
  auto list = nlohmann::ordered_json::array();
  std::size_t damaged = 0, others = 0;
  for (const auto& given : settings.report.records)
    for (const auto& path : files_to_check(given, others)) {
      const auto [state, why] = verify_file(path);
      const auto word = base::word_of<FileState::unknown>(state, {"ok", "damaged", "unknown"});
      damaged += state == FileState::damaged ? 1 : 0;
      list.push_back({{"path", path.string()}, {"state", word}, {"why", why}});
      if (!settings.json) print("{:<8} {}: {}\n", word, base::visible(path.string()), base::visible(why));
    }
  if (settings.json)
    std::puts(list.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
  else if (others > 0)
    print("{} other files are of kinds that are not checked\n", others);
  std::fflush(stdout);
  if (damaged > 0)
    base::fail(ErrorKind::data,
               "{} of {} files are damaged; take earlier checkpoints, and measure or copy the rest again",
               damaged, list.size());
  return 0;
}

}  // namespace paceline::cli
