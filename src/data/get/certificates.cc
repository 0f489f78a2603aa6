#include "data/get/certificates.h"

#include <array>
#include <system_error>

namespace paceline::data {

std::filesystem::path certificate_file(const Environment& environment, const std::filesystem::path& root) {
  for (const char* name : {"SSL_CERT_FILE", "CURL_CA_BUNDLE"})
    if (const char* const file = environment(name); file != nullptr && *file != '\0') return file;
  constexpr std::array kUsual{"etc/ssl/certs/ca-certificates.crt", "etc/pki/tls/certs/ca-bundle.crt",
                              "etc/ssl/ca-bundle.pem", "etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
                              "etc/ssl/cert.pem"};
  std::error_code ignored;
  for (const char* file : kUsual)
    if (std::filesystem::is_regular_file(root / file, ignored)) return root / file;
  return {};
}

}  // namespace paceline::data
