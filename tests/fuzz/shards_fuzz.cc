/// Any bytes as a manifest of shards, as what follows a manifest's SHA-256, and as a shard: no sample leads
/// out of its shard, and none has a label that is not there.

#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "data/image/tar.h"
#include "data/shards/shards.h"
#include "input.h"

namespace {

using namespace paceline;

void require_sound(const data::ShardIndex& index, std::uint64_t bytes_of_shard) {
  std::int64_t samples = 0;
  for (const auto& shard : index.shards) samples += shard.samples;
  if (samples != static_cast<std::int64_t>(index.members.size()) ||
      index.labels.size() != index.members.size())
    std::abort();
  for (const auto label : index.labels)
    if (label >= index.texts.size()) std::abort();
  std::size_t at = 0;
  for (const auto& shard : index.shards) {
    const auto length = bytes_of_shard > 0 ? bytes_of_shard : static_cast<std::uint64_t>(shard.bytes);
    for (std::int64_t i = 0; i < shard.samples; ++i, ++at)
      if (index.members[at].block * data::kTarBlock + index.members[at].bytes > length) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const std::string_view text(reinterpret_cast<const char*>(data), bytes);
  if (const auto index = data::shard_index_from(text)) require_sound(*index, 0);
  if (const auto index = data::shard_index_from_body(text)) {
    require_sound(*index, 0);
    if (!data::shard_index_from(data::shard_manifest_of(*index))) std::abort();
  }
  static const fuzz::Directory directory;
  const auto file = directory.write("a.tar", data, bytes);
  for (const char* field : {"", "label"}) try {
      require_sound(data::list_shard(file, field), bytes);
    } catch (const base::Error&) {
    }
  return 0;
}
