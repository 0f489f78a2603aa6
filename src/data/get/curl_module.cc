// The module paceline_curl.so: all that calls libcurl.

#include <curl/curl.h>

#include <memory>

#include "data/get/http_request.h"

namespace paceline::data {
namespace {

std::size_t on_data(char* data, std::size_t size, std::size_t count, void* request) {
  const std::size_t bytes = size * count;
  return static_cast<const HttpRequest*>(request)->take(std::as_bytes(std::span(data, bytes))) ? bytes : 0;
}

int on_progress(void* request, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<const HttpRequest*>(request)->goes_on() ? 0 : 1;
}

HttpAnswer::End end_of(CURLcode code) {
  switch (code) {
    case CURLE_OK:
      return HttpAnswer::End::whole;
    case CURLE_RANGE_ERROR:
      return HttpAnswer::End::no_range;
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      return HttpAnswer::End::no_such_address;
    default:
      return HttpAnswer::End::failed;
  }
}

}  // namespace
}  // namespace paceline::data

void paceline_http_get(const paceline::data::HttpRequest& request, paceline::data::HttpAnswer& answer) {
  using namespace paceline::data;
  static const CURLcode kReady = curl_global_init(CURL_GLOBAL_DEFAULT);
  const std::unique_ptr<CURL, void (*)(CURL*)> handle(curl_easy_init(), curl_easy_cleanup);
  if (kReady != CURLE_OK || handle == nullptr) {
    answer = {.end = HttpAnswer::End::failed, .reason = "libcurl cannot be initialised"};
    return;
  }
  CURL* const curl = handle.get();
  void* const of_callbacks = const_cast<HttpRequest*>(&request);
  char said[CURL_ERROR_SIZE] = "";
  curl_easy_setopt(curl, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(curl, CURLOPT_MAXREDIRS, 5L);
  curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, said);
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "paceline");
  if (!request.certificates.empty()) curl_easy_setopt(curl, CURLOPT_CAINFO, request.certificates.c_str());
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, long{request.connect_s});
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, long{request.stall_s});
  curl_easy_setopt(curl, CURLOPT_RESUME_FROM_LARGE, curl_off_t{request.from});
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_data);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, of_callbacks);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, of_callbacks);
  const CURLcode code = curl_easy_perform(curl);
  answer.end = end_of(code);
  if (code != CURLE_OK) answer.reason = said[0] != '\0' ? said : curl_easy_strerror(code);
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &answer.status);
  curl_off_t announced = -1;
  curl_easy_getinfo(curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &announced);
  answer.announced = announced;
}
