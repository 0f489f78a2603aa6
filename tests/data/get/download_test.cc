#include <gtest/gtest.h>

#include <map>
#include <string>

#include "base/file.h"
#include "data/files.h"
#include "data/get/download.h"

namespace paceline::data {
namespace {

namespace fs = std::filesystem;

TEST(Certificates, AreThoseThatTheEnvironmentNamesElseTheDistributions) {
  const TemporaryDirectory folder;
  std::map<std::string, std::string> said;
  const auto environment = [&](const char* name) {
    const auto found = said.find(name);
    return found == said.end() ? nullptr : found->second.c_str();
  };
  EXPECT_EQ(certificate_file(environment, folder.path()), "") << "libcurl's own";
  for (const char* file :
       {"etc/ssl/cert.pem", "etc/pki/tls/certs/ca-bundle.crt", "etc/ssl/certs/ca-certificates.crt"}) {
    fs::create_directories((folder.path() / file).parent_path());
    base::write_file(folder.path() / file, "x");
    EXPECT_EQ(certificate_file(environment, folder.path()), folder.path() / file);
  }
  said["CURL_CA_BUNDLE"] = "/mine";
  EXPECT_EQ(certificate_file(environment, folder.path()), "/mine");
  said["SSL_CERT_FILE"] = "/other";
  EXPECT_EQ(certificate_file(environment, folder.path()), "/other");
}

}  // namespace
}  // namespace paceline::data
