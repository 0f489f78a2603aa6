#pragma once

/// A folder with runs as a program would leave them, removed at the end.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "measure/events.h"

namespace paceline::serve {

class RunsFolder : public testing::Test {
 protected:
  RunsFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "paceline-runs-XXXXXX").string();
    directory_ = ::mkdtemp(pattern.data());
  }
  ~RunsFolder() override { std::filesystem::remove_all(directory_); }

  std::filesystem::path append(const std::string& run, const std::string& lines) const {
    const auto folder = directory_ / run;
    std::filesystem::create_directories(folder);
    std::ofstream(folder / measure::kEventsFile, std::ios::app) << lines;
    return folder;
  }
  std::filesystem::path begun(const std::string& run) const {
    return append(run,
                  "{\"event\":\"start\",\"at\":1000,\"kind\":\"train\",\"model\":\"m\",\"updates\":40}\n"
                  "{\"event\":\"step\",\"at\":1001,\"update\":10,\"updates\":40,\"epoch\":1,\"loss\":0.5,"
                  "\"images_per_s\":50,\"step_s\":0.02}\n");
  }
  std::filesystem::path ended(const std::string& run, const std::string& status = "complete") const {
    begun(run);
    return append(run, "{\"event\":\"end\",\"at\":1002,\"status\":\"" + status + "\"}\n");
  }

  /// The lock of a program that writes there (OutputDirectory).
  class Lock {
   public:
    explicit Lock(const std::filesystem::path& folder)
        : folder_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
      ::flock(folder_, LOCK_EX);
    }
    ~Lock() { ::close(folder_); }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

   private:
    int folder_;
  };

  std::filesystem::path directory_;
};

}  // namespace paceline::serve
