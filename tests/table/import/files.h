#pragma once

/// Files that tests import.

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "table/import/import.h"

namespace paceline::table {

/// Tests in a folder of their own.
class ImportedFiles : public testing::Test {
 protected:
  ImportedFiles()
      : folder_(std::filesystem::temp_directory_path() /
                ("paceline-" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()) +
                 std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~ImportedFiles() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return folder_ / name;
  }
  Table read(const std::string& text, const GivenFacts& given = {}, const std::string& name = "log") {
    const std::vector files{write(name, text)};
    return import_files(files, given).front();
  }
  /// The error of reading `text`; "none".
  std::string error_of(const std::string& text, const GivenFacts& given = {}) {
    try {
      (void)read(text, given);
    } catch (const base::Error& error) {
      return error.what();
    }
    return "none";
  }

  std::filesystem::path folder_;
};

}  // namespace paceline::table
