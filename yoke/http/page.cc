#include "yoke/http/page.h"

#include "yoke/base/embedded.h"
#include "yoke/base/ip.h"

namespace yoke::http {
namespace {

constexpr const char* kPagePolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

std::string_view without_port(std::string_view host) {
  if (host.starts_with('[')) return host.substr(0, host.find(']') + 1);
  return host.substr(0, host.find(':'));
}

}  // namespace

bool is_local_host(std::string_view host) {
  const std::string_view name = without_port(host);
  if (name == "localhost" || name == "[::1]") return true;
  const auto address = parse_ipv4(name);
  return address && address->value >> 24 == 127;
}

std::optional<Reply> page_reply(std::span<const PageFile> files, std::string_view path) {
  for (const PageFile& page : files) {
    if (page.path != path) continue;
    return Reply{.content_type = std::string(page.type),
                 .headers = {{"Content-Security-Policy", kPagePolicy},
                             {"Referrer-Policy", "no-referrer"},
                             {"Cache-Control", "no-cache"}},
                 .body = std::string(embedded_file(page.file).value())};
  }
  return std::nullopt;
}

}  // namespace yoke::http
