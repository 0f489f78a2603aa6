#include "data/formats/cifar_python.h"

#include <fmt/format.h>

#include <algorithm>

#include "data/formats/pickle.h"

namespace paceline::data {
namespace {

using Kind = Pickle::Kind;
using Value = Pickle::Value;

constexpr std::int64_t kImageBytes = 3072;
constexpr std::int64_t kLabels = 10;

/// The arguments of a call of `name` ("numpy\ndtype"), which must have `count` arguments.
const Value& arguments_of(const Pickle& pickle, const Value& call, std::string_view name, std::size_t count) {
  (void)pickle.expect(call, Kind::call, "a NumPy array or its type is needed");
  const Value& called = pickle.at(call.members[0]);
  // Since NumPy 2 the same function is in a different module.
  const bool is_renamed = name.starts_with("numpy.core.") && called.text.starts_with("numpy._core.") &&
                          name.substr(11) == called.text.substr(12);
  if (called.text != name && !is_renamed) {
    std::string text(called.text);
    std::replace(text.begin(), text.end(), '\n', '.');
    pickle.fail(called.offset, fmt::format("'{}' is not one of the functions that such a file calls", text));
  }
  const Value& arguments = pickle.expect(pickle.at(call.members[1]), Kind::tuple, "arguments are a tuple");
  if (arguments.members.size() != count)
    pickle.fail(arguments.offset,
                fmt::format("{} arguments are needed, and there are {}", count, arguments.members.size()));
  return arguments;
}

std::int64_t integer(const Pickle& pickle, int index, std::string_view what) {
  return pickle.expect(pickle.at(index), Kind::integer, what).number;
}

/// The bytes of an array [count][3072] of uint8, in C order.
std::span<const std::uint8_t> array_bytes(const Pickle& pickle, const Value& array, std::int64_t count) {
  (void)arguments_of(pickle, array, "numpy.core.multiarray\n_reconstruct", 3);
  if (array.state < 0) pickle.fail(array.offset, "the array has no contents");
  const Value& state = pickle.expect(pickle.at(array.state), Kind::tuple, "an array's contents are a tuple");
  if (state.members.size() != 5)
    pickle.fail(state.offset, "an array's contents are version, shape, type, order and bytes");
  const Value& shape = pickle.expect(pickle.at(state.members[1]), Kind::tuple, "a shape is a tuple");
  if (shape.members.size() != 2 ||
      integer(pickle, shape.members[0], "an extent is a whole number") != count ||
      integer(pickle, shape.members[1], "an extent is a whole number") != kImageBytes)
    pickle.fail(shape.offset, fmt::format("'data' must be an array of {} rows (as many as labels) of {} "
                                          "bytes",
                                          count, kImageBytes));
  const Value& type = arguments_of(pickle, pickle.at(state.members[2]), "numpy\ndtype", 3);
  if (const Value& name = pickle.expect(pickle.at(type.members[0]), Kind::text, "a type has a name");
      name.text != "u1")
    pickle.fail(name.offset, fmt::format("'data' must have unsigned bytes (type 'u1'), but has '{}'",
                                         name.text.substr(0, 20)));
  const Value& order = pickle.expect(pickle.at(state.members[3]), Kind::truth, "the order is a truth value");
  if (order.number != 0)
    pickle.fail(order.offset,
                "'data' must be stored row by row, but is stored column "
                "by column");
  const Value& contents = pickle.expect(pickle.at(state.members[4]), Kind::text, "contents are bytes");
  if (static_cast<std::int64_t>(contents.text.size()) != count * kImageBytes)
    pickle.fail(contents.offset, fmt::format("{} images need {} bytes, but the array has {}", count,
                                             count * kImageBytes, contents.text.size()));
  return {reinterpret_cast<const std::uint8_t*>(contents.text.data()), contents.text.size()};
}

}  // namespace

CifarPythonBatch read_cifar_python(const std::string& path, std::span<const std::uint8_t> bytes) {
  const Pickle pickle(path, bytes);
  CifarPythonBatch batch;
  const Value& labels =
      pickle.expect(pickle.member(pickle.root(), "labels"), Kind::list, "'labels' is a list");
  if (labels.members.empty()) pickle.fail(labels.offset, "there are no labels");
  for (const int index : labels.members) {
    const std::int64_t label = integer(pickle, index, "a label is a whole number");
    if (label < 0 || label >= kLabels)
      pickle.fail(pickle.at(index).offset,
                  fmt::format("label {} (from 0) is {}, but CIFAR-10 has labels 0 to {}", batch.labels.size(),
                              label, kLabels - 1));
    batch.labels.push_back(static_cast<std::uint8_t>(label));
  }
  batch.pixels = array_bytes(pickle, pickle.member(pickle.root(), "data"),
                             static_cast<std::int64_t>(batch.labels.size()));
  return batch;
}

}  // namespace paceline::data
