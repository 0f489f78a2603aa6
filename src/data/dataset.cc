#include "data/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <thread>

#include "base/error.h"
#include "base/sha256.h"
#include "base/text.h"

namespace paceline::data {
namespace {

/// Adds samples [begin, end) of `set`, which lie in files, to `lines`.
void add_files(const Dataset& set, std::int64_t begin, std::int64_t end, std::string& lines) {
  for (auto i = begin; i < end; ++i) {
    lines += set.list_entry(i);
    lines += '\0';  // which no path holds
    lines += std::to_string(set.label(i));
    lines += '\n';
  }
}

/// Samples in files. Threads wait for the file system together: it may be far away, and the files many.
void hash_files(const Dataset& set, int threads, base::Sha256& sum) {
  constexpr std::int64_t kPiece = 4096;
  const std::int64_t size = set.size();
  for (std::int64_t begin = 0; begin < size;) {
    const std::int64_t left = (size - begin + kPiece - 1) / kPiece;
    std::vector<std::string> pieces(static_cast<std::size_t>(std::clamp<std::int64_t>(threads, 1, left)));
    {
      const auto make = [&](std::size_t piece) {
        const auto first = begin + static_cast<std::int64_t>(piece) * kPiece;
        add_files(set, first, std::min(first + kPiece, size), pieces[piece]);
      };
      std::vector<std::jthread> helpers;
      for (std::size_t piece = 1; piece < pieces.size(); ++piece) {
        try {
          helpers.emplace_back(make, piece);
        } catch (const std::system_error&) {
          make(piece);  // the system gives no more threads
        }
      }
      make(0);
    }
    for (const auto& piece : pieces) sum.update(std::as_bytes(std::span(piece)));
    begin += static_cast<std::int64_t>(pieces.size()) * kPiece;
  }
}

/// Samples without files of their own: all labels if they are stored, and some samples as a whole. A copy in
/// which other pixels have changed is not told apart.
void hash_samples(const Dataset& set, base::Sha256& sum) {
  const bool is_stored = set.size() > 0 && set.stored_bytes(0) > 0;
  for (std::int64_t i = 0; is_stored && i < set.size(); ++i) {
    const std::int32_t label = set.label(i);
    sum.update(std::as_bytes(std::span(&label, 1)));
  }
  const std::int64_t looked_at = std::min<std::int64_t>(set.size(), set.reads_from_memory() ? 64 : 2);
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(set.format().bytes()));
  for (std::int64_t i = 0; i < looked_at; ++i) {
    const std::int32_t label = set.read(i * set.size() / looked_at, pixels);
    sum.update(std::as_bytes(std::span(&label, 1)));
    sum.update(std::as_bytes(std::span(pixels)));
  }
}

}  // namespace

std::int32_t Dataset::read_part(std::int64_t, const ChooseBox&, std::span<std::uint8_t>) const {
  base::expects(false, "only a data set whose images have sizes of their own is read in parts");
  return 0;
}

std::int32_t Dataset::label(std::int64_t index) const {
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(format().bytes()));
  return read(index, pixels);
}

std::optional<double> mean_stored_bytes(const Dataset& set) {
  constexpr std::int64_t kMost = 256;
  const std::int64_t looked_at = std::min(kMost, set.size());
  if (looked_at == 0) return std::nullopt;
  double sum = 0;
  for (std::int64_t i = 0; i < looked_at; ++i)
    sum += static_cast<double>(set.stored_bytes(i * set.size() / looked_at));
  if (sum == 0) return std::nullopt;
  return sum / static_cast<double>(looked_at);
}

std::string list_sha256(const Dataset& set, int threads) {
  base::Sha256 sum;
  const auto head = fmt::format("{} samples\n", set.size());
  sum.update(std::as_bytes(std::span(head)));
  if (set.size() > 0 && !set.list_entry(0).empty())
    hash_files(set, threads, sum);
  else
    hash_samples(set, sum);
  return sum.digits();
}

DataIdentity identity_of(const Source& source, int threads) {
  const auto list_of = [&](const std::unique_ptr<Dataset>& part) {
    return part == nullptr ? DataIdentity::List()
                           : DataIdentity::List{part->size(), list_sha256(*part, threads)};
  };
  const auto shown = [](const std::string& name) { return base::visible(name); };
  return {.classes = base::texts_of(source.class_names, shown),
          .format = source.train->format(),
          .evaluated = source.evaluated_format(),
          .mean = source.mean,
          .stddev = source.stddev,
          .eval_resize = source.eval_resize,
          .range = source.range,
          .train = list_of(source.train),
          .validation = list_of(source.validation),
          .test = list_of(source.test)};
}

}  // namespace paceline::data
