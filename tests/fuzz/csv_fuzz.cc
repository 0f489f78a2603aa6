/// Any bytes as a table of labels beside four images, and as a table of pixels.

#include "base/error.h"
#include "data/dataset.h"
#include "data/formats/arrays.h"
#include "input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace paceline;
  static const fuzz::Directory directory;
  [[maybe_unused]] static const bool is_filled = [] {
    for (const char* part : {"train", "test"}) std::filesystem::create_directories(directory.path() / part);
    for (const char* name : {"train/0.jpg", "train/1.jpg", "test/2.jpg", "3.jpg"})
      (void)directory.write(name, nullptr, 0);
    return true;
  }();
  const auto path = directory.write("t.csv", data, bytes);
  try {
    const auto source = data::open("folder:" + directory.path().string() + ",labels=t.csv");
    for (std::int64_t i = 0; i < source.train->size(); ++i)
      if (source.train->sample_name(i).find("/test/") != std::string::npos)
        std::abort();  // a test image in training
  } catch (const base::Error&) {
  }
  try {
    (void)data::is_pixel_table(path);
    (void)data::read_pixel_table(path);
  } catch (const base::Error&) {
  }
  return 0;
}
