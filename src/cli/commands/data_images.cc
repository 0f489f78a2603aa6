#include "cli/commands/data_images.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <limits>

#include "base/clock.h"
#include "base/csv.h"
#include "base/error.h"
#include "base/file.h"
#include "base/topology.h"
#include "cli/screen/screen.h"
#include "data/class_balance.h"
#include "data/image/decode.h"
#include "data/image/inspect.h"
#include "data/image/scan.h"
#include "data/image/tar.h"
#include "data/spec.h"

namespace paceline::cli {
namespace {

constexpr std::size_t kListed = 20;  ///< names that `info` prints of each kind; the rest is counted
constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

std::vector<data::PartReport> inspect_all(const data::Source& source, const std::vector<ImagePart>& parts,
                                          bool decode) {
  std::vector<data::PartReport> reports;
  for (const auto& part : parts)
    reports.push_back(data::inspect(*part.set, source.classes(), decode, base::usable_cores()));
  return reports;
}

std::string spread_of_sizes(std::vector<int> values) {
  if (values.empty()) return "-";
  std::sort(values.begin(), values.end());
  return fmt::format("{} / {} / {}", values.front(), values[values.size() / 2], values.back());
}

void print_parts(const std::vector<ImagePart>& parts, const std::vector<data::PartReport>& reports) {
  print("\n  {:<11} {:>8} {:>9}  {:<18} {:<18} {}\n", "part", "images", "MB", "height min/med/max",
        "width min/med/max", "kinds");
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto& report = reports[i];
    std::string kinds;
    for (const auto& [kind, count] : report.kinds)
      kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", kind, count);
    print("  {:<11} {:>8} {:>9.1f}  {:<18} {:<18} {}\n", parts[i].name, report.images,
          static_cast<double>(report.encoded_bytes) / 1e6, spread_of_sizes(report.heights),
          spread_of_sizes(report.widths), kinds);
    if (report.turned > 0) print("  {:<11} {:>8} turned upright by EXIF\n", "", report.turned);
  }
}

void print_classes_of_parts(const data::Source& source, const std::vector<ImagePart>& parts,
                            const std::vector<data::PartReport>& reports) {
  std::size_t width = 5;
  for (const auto& name : source.class_names) width = std::max(width, name.size());
  print("\n  {:>4}  {:<{}}", "", "class", width);
  for (const auto& part : parts) print(" {:>10}", part.name);
  print("\n");
  for (std::size_t c = 0; c < source.class_names.size(); ++c) {
    print("  {:>4}  {:<{}}", c, source.class_names[c], width);
    for (const auto& report : reports) print(" {:>10}", report.per_class[c]);
    print("\n");
  }
}

/// Names at most `most`; returns how many there are.
std::int64_t print_broken(const std::vector<data::PartReport>& reports, std::size_t most) {
  std::int64_t broken = 0;
  for (const auto& report : reports)
    for (const auto& entry : report.broken)
      if (static_cast<std::size_t>(broken++) < most) print("broken: {}: {}\n", entry.name, entry.reason);
  if (static_cast<std::size_t>(broken) > most)
    print("broken: and {} more\n", static_cast<std::size_t>(broken) - most);
  return broken;
}

/// What verify finds, as the rows of --list.
class Findings {
 public:
  void add(std::string_view finding, std::string_view part, std::string_view first, std::string_view second,
           std::string_view reason) {
    for (const auto cell : {finding, part, first, second}) text_ += base::csv_cell(cell) + ",";
    text_ += base::csv_cell(reason) + "\n";
  }
  /// Does nothing where there is no list.
  void write(const std::string& path) const {
    if (!path.empty()) base::write_file(path, text_);
  }

 private:
  std::string text_ = "finding,part,first,second,reason\n";
};

void report_duplicates(const std::vector<ImagePart>& parts, const std::vector<data::PartReport>& reports,
                       Findings& findings) {
  for (std::size_t a = 0; a < parts.size(); ++a)
    for (std::size_t b = a; b < parts.size(); ++b) {
      const auto found = data::find_duplicates(*parts[a].set, reports[a], *parts[b].set, reports[b]);
      const auto where =
          a == b ? "inside " + parts[a].name : fmt::format("in both {} and {}", parts[a].name, parts[b].name);
      if (found.empty()) {
        print("duplicates {}: none\n", where);
        continue;
      }
      const auto contradicting = std::count_if(found.begin(), found.end(),
                                               [](const auto& duplicate) { return !duplicate.same_label; });
      print("duplicates {}: {}, of them {} under another class{}\n", where, found.size(), contradicting,
            a == b ? "" : "; accuracy on such images does not test what was learned");
      for (const auto& duplicate : found) {
        print("  {} = {}\n", duplicate.second, duplicate.first);
        findings.add("duplicate", where, duplicate.second, duplicate.first,
                     duplicate.same_label ? "same class" : "another class");
      }
    }
}

/// Names classes of which a part has images, but none that decodes, and classes with nearly the same name.
void report_classes(const data::Source& source, const std::vector<ImagePart>& parts,
                    const std::vector<data::PartReport>& reports, Findings& findings) {
  for (std::size_t p = 0; p < parts.size(); ++p) {
    auto whole = reports[p].per_class;
    for (const auto& broken : reports[p].broken)
      --whole[static_cast<std::size_t>(parts[p].set->label(static_cast<std::int64_t>(broken.at)))];
    for (std::size_t c = 0; c < whole.size(); ++c) {
      if (whole[c] > 0 || (reports[p].per_class[c] == 0 && parts[p].name != "train")) continue;
      const auto reason = fmt::format("all {} images are broken", reports[p].per_class[c]);
      print("class without images in {}: {}: {}\n", parts[p].name, source.class_names[c], reason);
      findings.add("class without images", parts[p].name, source.class_names[c], "", reason);
    }
  }
  for (const auto& [first, second] : data::alike_names(source.class_names)) {
    print("classes with nearly the same name: '{}' and '{}'; if they are one, join their folders\n", first,
          second);
    findings.add("alike classes", "", first, second, "");
  }
}

}  // namespace

void print_unevenness(std::span<const std::int64_t> training_images) {
  const double ratio = data::unevenness(training_images);
  if (ratio < data::kUneven) return;
  print(
      "\nthe largest class has {:.3g} times the training images of the smallest: see --class-weights and --sampler "
      "(docs/uneven.md)\n",
      ratio);
}

std::vector<ImagePart> image_parts(const data::Source& source) {
  std::vector<ImagePart> parts;
  const auto add = [&](const char* name, const data::Dataset* set) {
    if (const auto* images = dynamic_cast<const data::ImageDataset*>(set)) parts.push_back({name, images});
  };
  add("train", source.train.get());
  add("validation", source.validation.get());
  add("test", source.test.get());
  return parts;
}

int describe_images(const data::Source& source, const std::vector<ImagePart>& parts) {
  const auto reports = inspect_all(source, parts, false);
  for (const auto& note : source.notes) print("{}\n", note);
  print("usual augmentation: random crop of {:g} to 1 of the area{}{}\n", source.crop_area,
        source.flip != data::Flip::none ? ", horizontal flip" : ", no flip",
        source.jitter > 0 ? fmt::format(", colours changed by up to {:g}", source.jitter) : "");
  print_parts(parts, reports);
  print_classes_of_parts(source, parts, reports);
  print_unevenness(reports.front().per_class);
  if (const auto broken = print_broken(reports, kListed); broken > 0)
    print(
        "{} images are broken, as their headers show; 'paceline data verify' decodes all images and "
        "names all that are broken\n",
        broken);
  return 0;
}

int verify_images(const data::Source& source, const std::vector<ImagePart>& parts, const std::string& list) {
  const auto started = base::Clock::now();
  const auto reports = inspect_all(source, parts, true);
  for (const auto& note : source.notes) print("{}\n", note);
  print_parts(parts, reports);
  Findings findings;
  report_duplicates(parts, reports, findings);
  report_classes(source, parts, reports, findings);
  std::int64_t images = 0;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    images += reports[p].images;
    for (const auto& entry : reports[p].broken)
      findings.add("broken", parts[p].name, entry.name, "", entry.reason);
  }
  const auto broken = print_broken(reports, kAll);
  findings.write(list);
  std::fflush(stdout);
  if (broken > 0)
    base::fail(ErrorKind::data,
               "{}: {} of {} images are broken; replace them, or train with --bad-images skip", source.spec,
               broken, images);
  print("all {} images decode, in {:.1f} s\n", images, base::seconds_since(started));
  return 0;
}

int write_image_manifest(const std::string& text) {
  const auto started = base::Clock::now();
  const auto spec = data::parse_spec(text);
  if (spec.name != "folder" || !base::is_folder(spec.directory))
    base::fail(ErrorKind::usage,
               "data manifest is for a folder of images, folder:DIR, but '{}' is not one that exists", text);
  const auto scan = data::write_manifest(spec.directory);
  print("{}/{}: {} images in {} folders, in {:.1f} s\n", spec.directory, data::kManifestName,
        scan.listing.size(), scan.folders.size(), base::seconds_since(started));
  return 0;
}

int pack_images(const data::Source& source, const std::vector<ImagePart>& parts,
                const std::filesystem::path& path, bool decoded) {
  const auto started = base::Clock::now();
  for (const auto& note : source.notes) print("{}\n", note);
  data::TarWriter tar(path);
  data::ImageDecoder decoder;
  data::RgbImage image;
  std::vector<std::uint8_t> buffer;
  std::int64_t images = 0, bytes = 0;
  for (const auto& part : parts)
    for (std::int64_t i = 0; i < part.set->size(); ++i) {
      auto file = part.set->encoded(i, buffer);
      std::string ending = "jpg";
      std::vector<std::uint8_t> pixels;
      try {
        const auto header = decoder.read_header(file);
        ending = data::ending(header.kind);
        if (decoded) {
          decoder.decode(file, header, 1, image, source.range);
          pixels = data::to_ppm(image);
          file = pixels;
          ending = "ppm";
        }
      } catch (const data::BrokenImage& broken) {
        base::fail(
            ErrorKind::data,
            "{}: the image cannot be decoded: {}; replace it, or pack without such images: --bad-images skip",
            part.set->sample_name(i), broken.what());
      }
      const auto label = static_cast<std::size_t>(part.set->label(i));
      // Numbers as names keep the order of the folder, and thereby the training.
      tar.add(fmt::format("{}/{}/{:08}.{}", part.name == "validation" ? "val" : part.name,
                          source.class_names[label], i, ending),
              file);
      ++images;
      bytes += static_cast<std::int64_t>(file.size());
    }
  tar.finish();
  print("{} images, {:.1f} MB{}, in {:.1f} s: {}   (open it as folder:{})\n", images,
        static_cast<double>(bytes) / 1e6, decoded ? " of pixels" : "", base::seconds_since(started),
        path.string(), path.string());
  return 0;
}

}  // namespace paceline::cli
