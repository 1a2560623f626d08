#include "yoke/http/curl.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/process.h"
#include "yoke/base/result.h"
#include "yoke/base/text.h"

namespace yoke::http {
namespace {

// In curl's configuration a text stands in double quotes, with backslashes before quotes and backslashes.
std::string config_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '\n' || c == '\r') throw Error(ErrorCode::kInvalid, "a URL or header cannot hold a line end");
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

// The last block of a file of headers: a proxy's and a 100 come before it.
HttpAnswer read_headers(const std::filesystem::path& file) {
  const auto text = try_to([&] { return read_file(file, Bytes{1 << 20}); });
  HttpAnswer answer;
  for (const std::string& raw : split(text.value_or(""), '\n')) {
    const std::string_view line = trim(raw);
    if (line.starts_with("HTTP/")) {
      answer = {};
      const std::size_t blank = line.find(' ');
      if (blank != std::string_view::npos) answer.status = std::atoi(std::string(line.substr(blank + 1, 3)).c_str());
      continue;
    }
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || colon == 0) continue;
    std::string name(trim(line.substr(0, colon)));
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    answer.headers.emplace_back(std::move(name), std::string(trim(line.substr(colon + 1))));
  }
  return answer;
}

// curl's exit statuses that mean that no HTTP was spoken (curl(1), EXIT CODES).
[[noreturn]] void refuse(const CurlQuestion& question, int status, const std::string& words) {
  const auto url = parse_url(question.url);
  const std::string host = url ? url->host : printable(question.url, 60);
  if (status == 60 || status == 51 || status == 35) {
    throw Error(ErrorCode::kPermission, fmt::format("the certificate of {} is not trusted: {}", host, words),
                "behind a proxy that inspects TLS, install its certificate (update-ca-certificates)");
  }
  const std::string hint = status == 6 || status == 5 ? "is there a way to the internet? A proxy is set by HTTPS_PROXY"
                                                      : "try again; 'curl -v' to that address shows more";
  throw Error(status == 28 ? ErrorCode::kTimeout : ErrorCode::kUnavailable,
              fmt::format("{} cannot be reached: {}", host, words), hint);
}

}  // namespace

std::string curl_config(const CurlQuestion& question, const std::filesystem::path& header_file) {
  std::string text = fmt::format(
      "url = {}\nsilent\nshow-error\nglobbing = false\nproto = \"=http,https\"\nmax-redirs = 0\n"
      "connect-timeout = 15\nspeed-limit = 1\nspeed-time = {}\ndump-header = {}\n",
      config_text(question.url), std::max(1, static_cast<int>(question.stall_limit.value)),
      config_text(header_file.native()));
  // An old spelling of "no globbing" that every version knows.
  text.replace(text.find("globbing = false"), 16, "globoff");
  for (const std::string& header : question.headers) text += fmt::format("header = {}\n", config_text(header));
  if (question.head_only) text += "head\n";
  if (question.body) {
    text += fmt::format("data-binary = {}\n", config_text("@" + (header_file.parent_path() / "body").native()));
  }
  if (question.range) text += fmt::format("range = \"{}-{}\"\n", question.range->first, question.range->second);
  if (question.output) text += fmt::format("output = {}\n", config_text(question.output->native()));
  return text;
}

CurlAnswer fetch(const CurlQuestion& question) {
  const ScratchDir scratch("yoke-http");
  const std::filesystem::path headers = scratch.path() / "headers";
  if (question.body) write_file_atomically(scratch.path() / "body", *question.body, {.mode = 0600});
  const auto outcome = try_to([&] {
    return run({.argv = {"curl", "-q", "--config", "-"},
                .input = curl_config(question, headers),
                .timeout = Seconds{24 * 3600.0},
                .output_limit = Bytes{16 << 20}});
  });
  if (!outcome) {
    if (outcome.error().code() != ErrorCode::kNotFound) throw Error(outcome.error());
    throw Error(ErrorCode::kNotFound, "curl is not installed, and downloads need it", "sudo apt-get install curl");
  }
  CurlAnswer answer{.answer = read_headers(headers), .exit_status = outcome->exit_status, .problem = {}};
  answer.problem = std::string(trim(outcome->err));
  if (!question.head_only && !question.output) answer.answer.body = outcome->out;
  if (outcome->exit_status != 0 && answer.answer.status == 0) refuse(question, outcome->exit_status, answer.problem);
  if (outcome->truncated) throw Error(ErrorCode::kExhausted, "the server's answer is larger than 16 MiB");
  return answer;
}

std::optional<Url> parse_url(std::string_view text) {
  const std::size_t colon = text.find("://");
  if (colon == std::string_view::npos) return std::nullopt;
  Url url{.scheme = std::string(text.substr(0, colon)), .host = {}, .path = "/"};
  if (url.scheme != "http" && url.scheme != "https") return std::nullopt;
  const std::string_view rest = text.substr(colon + 3);
  const std::size_t slash = rest.find_first_of("/?#");
  url.host = std::string(rest.substr(0, slash));
  if (slash != std::string_view::npos) url.path = std::string(rest.substr(slash));
  if (url.path.front() != '/') url.path.insert(0, "/");
  const bool odd = url.host.empty() || url.host.find('@') != std::string::npos ||
                   std::any_of(text.begin(), text.end(), [](unsigned char c) { return c <= ' ' || c == 0x7f; });
  if (odd) return std::nullopt;
  return url;
}

std::string to_string(const Url& url) { return url.scheme + "://" + url.host + url.path; }

std::optional<Url> resolve_location(const Url& from, std::string_view location) {
  if (location.find("://") != std::string_view::npos) return parse_url(location);
  if (location.starts_with("//")) return parse_url(from.scheme + ":" + std::string(location));
  if (location.starts_with('/')) return parse_url(from.scheme + "://" + from.host + std::string(location));
  return std::nullopt;
}

std::string quote_path(std::string_view path) {
  std::string out;
  for (const char c : path) {
    const bool plain =
        std::isalnum(static_cast<unsigned char>(c)) || std::string_view("/-._~").find(c) != std::string_view::npos;
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

}  // namespace yoke::http
