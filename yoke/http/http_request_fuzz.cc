// Any bytes, cut at any place: the same requests, the same refusal, never a crash.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "yoke/http/http_request.h"

namespace {

std::string read_in_pieces(std::string_view text, std::size_t piece) {
  yoke::http::RequestReader reader({.head_bytes = 512, .headers = 8, .body_bytes = 1024});
  std::string seen;
  for (std::size_t i = 0; i < text.size(); i += piece) {
    reader.take(text.substr(i, piece));
    while (const auto request = reader.next()) {
      if (request->body.size() > 1024 || request->headers.size() > 8) std::abort();
      seen += request->method + " " + request->path + "?" + request->query + "\n" + request->body + "\n";
    }
  }
  if (reader.refusal()) seen += std::to_string(reader.refusal()->status);
  return seen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string whole = read_in_pieces(text, text.size() + 1);
  const std::string pieces = read_in_pieces(text, 1 + size % 7);
  if (whole != pieces) std::abort();
  return 0;
}
