// Pages that the program carries inside, for servers that show one, and who may see them.
//
//   constexpr PageFile kFiles[] = {{"/", "yoke/watch/page/index.html", "text/html; charset=utf-8"}};
//   if (const auto reply = page_reply(kFiles, request.path)) return exchange->respond(*reply);
#pragma once
#include <optional>
#include <span>
#include <string_view>

#include "yoke/http/server.h"

namespace yoke::http {

struct PageFile {
  std::string_view path;  // of the request
  std::string_view file;  // of embedded_file()
  std::string_view type;
};

// Nothing where no file has this path. The headers forbid the browser to run or load anything but the server's own
// files, and to show the page in a frame.
std::optional<Reply> page_reply(std::span<const PageFile> files, std::string_view path);

// Whether a request's Host names this machine ("localhost:8080", "127.0.0.1", "[::1]:80"). A server that listens for
// this machine only has no other name: where it is asked by one, the page of another site has made its own name lead
// here (DNS rebinding), and its script would read what it gets.
bool is_local_host(std::string_view host);

}  // namespace yoke::http
