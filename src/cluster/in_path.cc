#include "cluster/in_path.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>

namespace paceline::cluster {

std::string in_path(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');)
    if (const auto file = std::filesystem::path(folder) / name; ::access(file.c_str(), X_OK) == 0)
      return file.string();
  return "";
}

bool srun_has_pmix() {
  std::FILE* const answer = ::popen("srun --mpi=list 2>&1", "r");
  if (answer == nullptr) return false;
  std::string text;
  std::array<char, 256> piece{};
  while (std::fgets(piece.data(), piece.size(), answer) != nullptr) text += piece.data();
  ::pclose(answer);
  return text.find("pmix") != std::string::npos;
}

}  // namespace paceline::cluster
