#include "yoke/rank/rendezvous.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>

#include <chrono>
#include <cstring>
#include <optional>
#include <thread>

#include "yoke/base/error.h"
#include "yoke/base/json.h"
#include "yoke/base/result.h"
#include "yoke/base/text.h"

namespace yoke {
namespace {

using namespace literals;

constexpr std::size_t kLongestText = 1 << 20;
constexpr std::string_view kGreeting = "yoke rendezvous 1\n";

void send_text(Socket& socket, std::string_view text, Deadline deadline) {
  const auto size = static_cast<std::uint32_t>(text.size());
  std::string frame(kGreeting);
  for (int shift = 0; shift < 32; shift += 8) frame.push_back(static_cast<char>((size >> shift) & 0xffU));
  frame += text;
  socket.send_all(frame, deadline);
}

std::string receive_text(Socket& socket, Deadline deadline) {
  std::string head(kGreeting.size() + 4, '\0');
  socket.receive_exact(std::as_writable_bytes(std::span(head)), deadline);
  std::size_t size = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    size |= static_cast<std::size_t>(static_cast<unsigned char>(head[kGreeting.size() + i])) << (8 * i);
  }
  if (!head.starts_with(kGreeting) || size > kLongestText) {
    throw Error(ErrorCode::kInvalid, fmt::format("{} does not speak as a rank of yoke does", socket.peer()));
  }
  std::string text(size, '\0');
  socket.receive_exact(std::as_writable_bytes(std::span(text)), deadline);
  return text;
}

struct Guest {
  Socket socket;
  std::string text;
};

// The rank and text that a newcomer brings; nothing where it is no rank that is still expected.
std::optional<int> receive_guest(Socket& socket, std::vector<std::optional<Guest>>& guests, std::string& text,
                                 Deadline deadline) {
  const auto said = try_to([&] { return parse_json(receive_text(socket, deadline), "a rank's greeting"); });
  if (!said) return std::nullopt;
  const Document* rank = said->find("rank");
  const Document* size = said->find("size");
  const Document* brought = said->find("text");
  if (!rank || !size || !brought || size->text != fmt::format("{}", guests.size())) return std::nullopt;
  for (std::size_t i = 1; i < guests.size(); ++i) {
    if (guests[i] || rank->text != fmt::format("{}", i)) continue;
    text = brought->text;
    return static_cast<int>(i);
  }
  return std::nullopt;
}

std::vector<std::string> host(const Rendezvous& group, const std::string& mine, Deadline deadline) {
  Socket listener = listen_tcp(group.at);
  std::vector<std::optional<Guest>> guests(static_cast<std::size_t>(group.size));
  int missing = group.size - 1;
  while (missing > 0) {
    auto socket = try_to([&] { return listener.accept(deadline); });
    if (!socket) {
      if (!deadline.expired()) throw socket.error();
      std::vector<std::string> absent;
      for (std::size_t i = 1; i < guests.size(); ++i) {
        if (!guests[i]) absent.push_back(fmt::format("{}", i));
      }
      throw Error(ErrorCode::kTimeout,
                  fmt::format("these ranks did not come to {}: {}", to_string(group.at), fmt::join(absent, ", ")),
                  "are they running, and does a firewall let them through?");
    }
    std::string text;
    const Seconds patience{std::min(2.0, deadline.remaining().value)};  // a silent stranger holds nobody up for long
    if (const auto rank = receive_guest(*socket, guests, text, Deadline::after(patience))) {
      guests[static_cast<std::size_t>(*rank)] = Guest{std::move(*socket), std::move(text)};
      --missing;
    }
  }
  Document all = Document::list({Document::string(mine)});
  for (std::size_t i = 1; i < guests.size(); ++i) all.items.push_back(Document::string(guests[i]->text));
  const std::string answer = print_json(all);
  for (std::size_t i = 1; i < guests.size(); ++i) send_text(guests[i]->socket, answer, deadline);
  std::vector<std::string> texts;
  for (const Document& item : all.items) texts.push_back(item.text);
  return texts;
}

std::vector<std::string> attend(const Rendezvous& group, const std::string& mine, Deadline deadline) {
  const std::string greeting = print_json(Document::map({{"rank", Document::number(std::int64_t{group.rank})},
                                                         {"size", Document::number(std::int64_t{group.size})},
                                                         {"text", Document::string(mine)}}));
  // Rank 0 may come later, and whoever listens there before it is not the host.
  while (true) {
    const auto answer = try_to([&] {
      Socket socket = connect_tcp(group.at, {}, deadline);
      send_text(socket, greeting, deadline);
      return parse_json(receive_text(socket, deadline), "rank 0's answer");
    });
    if (answer && answer->items.size() == static_cast<std::size_t>(group.size)) {
      std::vector<std::string> texts;
      for (const Document& item : answer->items) texts.push_back(item.text);
      return texts;
    }
    if (deadline.expired()) {
      throw Error(ErrorCode::kTimeout, fmt::format("rank 0 was not found at {}", to_string(group.at)),
                  "is it running, and does a firewall let us through?");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

}  // namespace

std::vector<std::string> meet(const Rendezvous& group, const std::string& mine, Deadline deadline) {
  if (group.size == 1) return {mine};
  return group.rank == 0 ? host(group, mine, deadline) : attend(group, mine, deadline);
}

std::string resolve_address(const std::string& name) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failure = getaddrinfo(name.c_str(), nullptr, &hints, &found);
  if (failure != 0) {
    throw Error(ErrorCode::kNotFound,
                fmt::format("the name '{}' has no address: {}", printable(name, 80), gai_strerror(failure)));
  }
  char text[INET_ADDRSTRLEN] = {};
  sockaddr_in address{};
  std::memcpy(&address, found->ai_addr, sizeof address);
  inet_ntop(AF_INET, &address.sin_addr, text, sizeof text);
  freeaddrinfo(found);
  return text;
}

}  // namespace yoke
