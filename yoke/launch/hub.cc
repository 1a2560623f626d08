#include "yoke/launch/hub.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <set>

#include "yoke/base/fields.h"
#include "yoke/base/files.h"
#include "yoke/base/json.h"
#include "yoke/base/result.h"
#include "yoke/base/text.h"

namespace yoke::launch {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kFilesMax = 20'000;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? std::string(trim(value)) : "";
}

std::string token_of_files() {
  fs::path file = variable("HF_TOKEN_PATH");
  if (file.empty() && !variable("HF_HOME").empty()) file = fs::path(variable("HF_HOME")) / "token";
  if (file.empty() && !variable("HOME").empty()) file = fs::path(variable("HOME")) / ".cache/huggingface/token";
  const auto text = try_to([&] { return read_file(file, Bytes{4096}); });
  return text ? std::string(trim(*text)) : "";
}

bool is_hex(std::string_view text, std::size_t size) {
  return text.size() == size &&
         std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

// A name below the folder, and nothing else.
bool is_safe(const std::string& path) {
  if (path.empty() || path.size() > 1000 || path.front() == '/' || path.find('\\') != std::string::npos) return false;
  for (const std::string& part : split(path, '/')) {
    if (part.empty() || part == "." || part == ".." || part.ends_with(".partial")) return false;
  }
  return std::none_of(path.begin(), path.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; });
}

std::string lower_case_of(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

const Document& member(const Document& document, std::string_view key) {
  static const Document kNothing;
  const Document* const found = document.find(key);
  return found ? *found : kNothing;
}

HubFile read_sibling(const Document& sibling) {
  HubFile file{.path = member(sibling, "rfilename").text};
  const Document& large = member(sibling, "lfs");
  const bool is_large = large.kind == Document::Kind::kMap;
  const Document& size = is_large && large.find("size") ? member(large, "size") : member(sibling, "size");
  file.size = from_json<std::uint64_t>(size);
  file.sha256 = is_large ? member(large, "sha256").text : "";
  file.git = member(sibling, "blobId").text;
  return file;
}

void check_file(const HubFile& file, std::set<std::string>& names) {
  const auto refuse = [&](std::string_view why) {
    throw Error(ErrorCode::kInvalid, fmt::format("the server lists '{}', which {}", printable(file.path, 80), why),
                "nothing was written; this is no sound repository");
  };
  if (!is_safe(file.path)) refuse("is no name below the model's folder");
  if (!names.insert(lower_case_of(file.path)).second) refuse("differs from another name in upper and lower case only");
  if (file.size > (1ULL << 44)) refuse("is larger than 16 TiB");
  if (file.sha256.empty() ? !is_hex(file.git, 40) : !is_hex(file.sha256, 64)) refuse("has no hash to check it by");
}

}  // namespace

std::uint64_t HubModel::bytes() const {
  std::uint64_t sum = 0;
  for (const HubFile& file : files) sum += file.size;
  return sum;
}

Hub hub_of_environment() {
  std::string endpoint = variable("HF_ENDPOINT");
  if (endpoint.empty()) endpoint = "https://huggingface.co";
  while (endpoint.ends_with('/')) endpoint.pop_back();
  const auto url = http::parse_url(endpoint);
  if (!url) {
    throw Error(ErrorCode::kUsage, fmt::format("HF_ENDPOINT is no address: '{}'", printable(endpoint, 80)),
                "such as https://huggingface.co");
  }
  Hub hub{.endpoint = *url, .token = variable("HF_TOKEN")};
  if (hub.token.empty()) hub.token = variable("HUGGING_FACE_HUB_TOKEN");
  if (hub.token.empty()) hub.token = token_of_files();
  if (!hub.token.empty() && hub.endpoint.scheme != "https") {
    throw Error(ErrorCode::kPermission, "a token is not sent over a connection without TLS",
                "use an https address in HF_ENDPOINT, or unset HF_TOKEN");
  }
  return hub;
}

bool fits_pattern(std::string_view name, std::string_view pattern) {
  std::size_t n = 0, p = 0, star = std::string_view::npos, from = 0;
  while (n < name.size()) {
    if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++n, ++p;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      from = n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++from;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

HubModel parse_hub_model(const Document& answer, const std::string& id) {
  HubModel model{.id = id, .commit = member(answer, "sha").text, .gate = {}, .licence = {}, .files = {}};
  if (!is_hex(model.commit, 40)) {
    throw Error(ErrorCode::kInvalid, "the server's answer names no commit", "is HF_ENDPOINT a Hub?");
  }
  const Document& gated = member(answer, "gated");
  if (gated.kind == Document::Kind::kText && gated.text != "false") model.gate = gated.text;
  model.licence = printable(member(member(answer, "cardData"), "license").text, 60);
  const Document& siblings = member(answer, "siblings");
  if (siblings.kind != Document::Kind::kList || siblings.items.size() > kFilesMax) {
    throw Error(ErrorCode::kInvalid, fmt::format("the server's list of files of {} makes no sense", id));
  }
  std::set<std::string> names;
  for (const Document& sibling : siblings.items) {
    model.files.push_back(read_sibling(sibling));
    check_file(model.files.back(), names);
  }
  return model;
}

HubModel describe_model(const Hub& hub, const std::string& id, const std::string& revision) {
  const bool odd = std::count(id.begin(), id.end(), '/') > 1 || id.empty() || id.starts_with('/') || id.ends_with('/');
  if (odd) {
    throw Error(ErrorCode::kUsage, fmt::format("'{}' is no name of a model", printable(id, 80)),
                "such as Qwen/Qwen3-32B");
  }
  std::string quoted = http::quote_path(revision);
  for (std::size_t at = 0; (at = quoted.find('/', at)) != std::string::npos;) quoted.replace(at, 1, "%2F");
  http::CurlQuestion question{.url =
                                  fmt::format("{}://{}/api/models/{}/revision/{}?blobs=true", hub.endpoint.scheme,
                                              hub.endpoint.host + (hub.endpoint.path == "/" ? "" : hub.endpoint.path),
                                              http::quote_path(id), quoted)};
  if (!hub.token.empty()) question.headers.push_back("authorization: Bearer " + hub.token);
  const http::CurlAnswer answer = http::fetch(question);
  if (answer.answer.status != 200 || !answer.is_complete()) throw hub_error(answer, hub, id);
  return parse_hub_model(parse_json(answer.answer.body, "the Hub's answer"), id);
}

Error hub_error(const http::CurlAnswer& answer, const Hub& hub, const std::string& what) {
  const int status = answer.answer.status;
  const std::string code = answer.answer.header("x-error-code").value_or("");
  const std::string words = printable(answer.answer.header("x-error-message").value_or(""), 200);
  const std::string page = fmt::format("{}://{}/{}", hub.endpoint.scheme, hub.endpoint.host, what);
  if (code == "GatedRepo" || (status == 403 && code.empty())) {
    return {ErrorCode::kPermission,
            fmt::format("{} is gated: {}", what, words.empty() ? "access is not granted" : words),
            hub.token.empty() ? fmt::format("accept its terms at {}, then set HF_TOKEN", page)
                              : fmt::format("accept its terms at {} with the account of this token", page)};
  }
  if (status == 401 && !hub.token.empty() && code.empty()) {
    return {ErrorCode::kPermission, "the Hub does not know this token", "make a new one, and set HF_TOKEN"};
  }
  if (status == 404 || status == 401) {
    const bool revision = code == "RevisionNotFound";
    return {ErrorCode::kNotFound,
            revision ? fmt::format("{} has no such revision", what)
                     : fmt::format("there is no model {}, or it is private", what),
            revision ? "--revision main" : "check the name; a private model needs HF_TOKEN"};
  }
  return {ErrorCode::kUnavailable,
          status == 0 ? fmt::format("the Hub did not answer: {}", answer.problem)
                      : fmt::format("the Hub answered {} for {} {}", status, what, words),
          "try again later; what has come stays"};
}

}  // namespace yoke::launch
