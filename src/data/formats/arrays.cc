#include "data/formats/arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "base/text.h"

namespace paceline::data {
namespace {

using base::ErrorKind;

class ArrayDataset final : public Dataset {
 public:
  ArrayDataset(ArrayPart part, int first) : part_(std::move(part)), first_(first) {}

  [[nodiscard]] std::int64_t size() const override { return static_cast<std::int64_t>(part_.labels.size()); }
  [[nodiscard]] ImageFormat format() const override { return part_.format; }
  std::int32_t read(std::int64_t index, std::span<std::uint8_t> pixels) const override {
    const std::int32_t found = label(index);
    const auto bytes = part_.format.bytes();
    base::expects(static_cast<std::int64_t>(pixels.size()) == bytes, "pixels hold one image");
    std::copy_n(part_.pixels.begin() + index * bytes, bytes, pixels.begin());
    return found;
  }
  [[nodiscard]] std::int32_t label(std::int64_t index) const override {
    base::expects(index >= 0 && index < size(), "0 <= index < size");
    return static_cast<std::int32_t>(part_.labels[static_cast<std::size_t>(index)] - first_);
  }

 private:
  ArrayPart part_;
  int first_;  ///< the label of class 0
};

/// Checks that a part can be evaluated on what `train` teaches.
void check_part(const ArrayPart& train, const LabelNumbers& classes, const ArrayPart& part) {
  if (part.labels.empty())
    base::fail(ErrorKind::data, "{}: holds no images; leave the array out, or fetch the file again",
               part.where);
  if (part.format != train.format)
    base::fail(
        ErrorKind::data,
        "{}: its images are {}x{}x{}, but those of {} are {}x{}x{} (height, width, channels); all parts have "
        "one size: check that they are of one data set",
        part.where, part.format.height, part.format.width, part.format.channels, train.where,
        train.format.height, train.format.width, train.format.channels);
  for (std::size_t i = 0; i < part.labels.size(); ++i)
    if (part.labels[i] < classes.first || part.labels[i] >= classes.first + classes.count)
      base::fail(
          ErrorKind::data,
          "{}: image {} (from 0) has the label {}, but training has labels {} to {}; check that the parts "
          "are of one data set",
          part.where_labels, i, part.labels[i], classes.first, classes.first + classes.count - 1);
}

/// Holds back `fraction` of every class as test set.
void cut_test_set(const Spec& spec, double fraction, Source& source) {
  std::shared_ptr<const Dataset> whole = std::move(source.train);
  std::vector<std::int32_t> labels;
  for (std::int64_t i = 0; i < whole->size(); ++i) labels.push_back(whole->label(i));
  Cut cut = stratified_cut(labels, fraction, CutFor::test);
  if (cut.part.empty())
    base::fail(
        ErrorKind::data,
        "data '{}': no class of the {} images is large enough to hold images back for testing; add images, or "
        "a test part",
        spec.text, labels.size());
  source.notes.push_back(fmt::format(
      "no test part: {} of {} images are the test set, {:g} of every class, the same ones for every seed",
      cut.part.size(), labels.size(), fraction));
  source.train = std::make_unique<Subset>(whole, std::move(cut.rest));
  source.test = std::make_unique<Subset>(whole, std::move(cut.part));
}

}  // namespace

std::vector<std::string> LabelNumbers::names() const {
  std::vector<std::string> texts;
  for (int c = 0; c < count; ++c) texts.push_back(std::to_string(first + c));
  return texts;
}

LabelNumbers number_classes(const std::string& where, const std::map<std::int64_t, std::int64_t>& counts) {
  constexpr std::int64_t kMostClasses = 1'000'000;
  base::expects(!counts.empty(), "there are labels");
  const auto least = counts.begin()->first;
  if (least < 0 || least > 1)
    base::fail(ErrorKind::data,
               "{}: its smallest label is {}, but classes are numbered from 0 or from 1; number them anew "
               "(numpy.unique(labels, return_inverse=True)[1])",
               where, least);
  auto next = least;
  for (const auto& [label, count] : counts) {
    if (label != next || label >= kMostClasses)
      base::fail(
          ErrorKind::data,
          "{}: the label {} occurs, but none of {}, so it is damaged or the classes are not numbered one after "
          "another; fetch the file again, or number them anew (numpy.unique(labels, return_inverse=True)[1])",
          where, label, next);
    ++next;
  }
  if (counts.size() < 2)
    base::fail(ErrorKind::data,
               "{}: all labels are {}, but a classifier needs at least two classes; check the labels", where,
               least);
  return {static_cast<int>(least), static_cast<int>(counts.size())};
}

Source source_of_arrays(const Spec& spec, ArrayParts parts) {
  const double test_part = decimal_option(spec, "test", 0.2, 0.01, 0.9);
  if (!parts.train)
    base::fail(ErrorKind::data, "data '{}': there is no training part; check the file", spec.text);
  std::map<std::int64_t, std::int64_t> counts;
  for (const auto label : parts.train->labels) ++counts[label];
  if (counts.empty())
    base::fail(ErrorKind::data, "{}: holds no images; fetch the file again", parts.train->where);
  const auto classes = number_classes(parts.train->where_labels, counts);
  Source source;
  source.class_names = classes.names();
  source.range = range_option(spec);
  for (const auto* part : {&parts.train, &parts.validation, &parts.test}) {
    if (!*part) continue;
    check_part(*parts.train, classes, **part);
    source.resident_bytes += std::ssize((*part)->pixels) + 8 * std::ssize((*part)->labels);
  }
  const auto dataset = [&](std::optional<ArrayPart>& part) -> std::unique_ptr<Dataset> {
    if (!part) return nullptr;
    return std::make_unique<ArrayDataset>(std::move(*part), classes.first);
  };
  source.train = dataset(parts.train);
  source.validation = dataset(parts.validation);
  source.test = dataset(parts.test);
  if (!parts.left_out.empty())
    source.notes.push_back(fmt::format("left out: {} of other names ({})",
                                       base::counted(std::ssize(parts.left_out), "array"),
                                       base::visible(base::joined(parts.left_out, ", ").substr(0, 200))));
  if (!source.test && source.validation) {
    source.test = std::move(source.validation);
    source.notes.emplace_back("no test part: the validation part is the test set");
  }
  if (!source.test)
    cut_test_set(spec, test_part, source);
  else if (spec.options.contains("test"))
    source.notes.push_back(
        fmt::format("test={} changes nothing: there is a test or validation part", spec.options.at("test")));
  return source;
}

}  // namespace paceline::data
