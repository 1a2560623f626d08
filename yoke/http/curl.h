// Questions over TLS, by the system's curl as a process: certificates, proxies (HTTPS_PROXY, NO_PROXY) and their
// updates are the system's (docs/decisions/0012-downloads-by-curl.md). Redirects are not followed: who sends a token
// must see where it goes. Headers go to curl on its standard input, never in its arguments.
//
//   const CurlAnswer answer = fetch({.url = "https://huggingface.co/api/models/x/y"});
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "yoke/base/units.h"
#include "yoke/http/http_answer.h"

namespace yoke::http {

struct CurlQuestion {
  std::string url;
  std::vector<std::string> headers = {};  // "name: value"; may hold secrets
  bool head_only = false;
  std::optional<std::pair<std::uint64_t, std::uint64_t>> range = {};  // first and last byte
  std::optional<std::filesystem::path> output = {};  // the body goes there; else it is kept, up to 16 MiB
  Seconds stall_limit{30};                           // without a byte
  std::optional<std::string> body = {};              // is posted
};

struct CurlAnswer {
  HttpAnswer answer;    // of the last response: status 0 where none came
  int exit_status = 0;  // curl's own: 0 where the whole body came
  std::string problem;  // what curl says, where it failed
  bool is_complete() const { return exit_status == 0; }
};

// Throws Error(kNotFound) where curl is not installed, kUnavailable where no response came at all (with curl's words),
// kPermission where the certificate is not trusted. A body that was cut is an answer.
CurlAnswer fetch(const CurlQuestion& question);

// The text that curl reads: for tests.
std::string curl_config(const CurlQuestion& question, const std::filesystem::path& header_file);

// "https://host/a/b?c" in parts; nothing for what is no http or https URL.
struct Url {
  std::string scheme, host, path;  // host with its port; path with the query, at least "/"
  friend bool operator==(const Url&, const Url&) = default;
};
std::optional<Url> parse_url(std::string_view text);
std::string to_string(const Url& url);
// Where a Location leads, seen from a URL; nothing for what is no http or https URL.
std::optional<Url> resolve_location(const Url& from, std::string_view location);
// A path's characters as they may stand in a URL; '/' stays.
std::string quote_path(std::string_view path);

}  // namespace yoke::http
