#include "yoke/rank/rendezvous.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netdb.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>

#include "yoke/base/error.h"
#include "yoke/base/json.h"
#include "yoke/base/result.h"
#include "yoke/base/text.h"
#include "yoke/rank/own_address.h"

namespace yoke {
namespace {

using namespace literals;

constexpr std::size_t kLongestText = 1 << 20;
constexpr std::string_view kGreeting = "yoke rendezvous 2\n";

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

// The rank that a newcomer claims; nothing where it is none that is still expected.
std::optional<std::size_t> receive_guest(Socket& socket, const std::vector<Socket>& guests, Deadline deadline) {
  const auto said = try_to([&] { return parse_json(receive_text(socket, deadline), "a rank's greeting"); });
  if (!said) return std::nullopt;
  const Document* rank = said->find("rank");
  const Document* size = said->find("size");
  if (!rank || !size || size->text != fmt::format("{}", guests.size())) return std::nullopt;
  for (std::size_t i = 1; i < guests.size(); ++i) {
    if (!guests[i] && rank->text == fmt::format("{}", i)) return i;
  }
  return std::nullopt;
}

Error absence(const Rendezvous& group, const std::vector<Socket>& guests) {
  std::vector<std::string> absent;
  for (std::size_t i = 1; i < guests.size(); ++i) {
    if (!guests[i]) absent.push_back(fmt::format("{}", i));
  }
  return Error(ErrorCode::kTimeout,
               fmt::format("these ranks did not come to {}:{}: {}", group.host, group.port, fmt::join(absent, ", ")),
               "are they running, and does a firewall let them through?");
}

// By rank; nobody at 0.
std::vector<Socket> receive_guests(const Rendezvous& group, Deadline deadline) {
  Socket listener = listen_tcp({group.listen_on, group.port});
  std::vector<Socket> guests(static_cast<std::size_t>(group.size));
  for (int missing = group.size - 1; missing > 0;) {
    auto socket = try_to([&] { return listener.accept(deadline); });
    if (!socket && deadline.expired()) throw absence(group, guests);
    if (!socket) throw socket.error();
    const Seconds patience{std::min(2.0, deadline.remaining().value)};  // a silent stranger holds nobody up for long
    if (const auto rank = receive_guest(*socket, guests, Deadline::after(patience))) {
      guests[*rank] = std::move(*socket);
      --missing;
    }
  }
  return guests;
}

// The address of rank 0's machine by which others came, rather one that leads to other machines.
std::string outward_address(const std::vector<Socket>& guests) {
  std::string address;
  for (std::size_t i = 1; i < guests.size(); ++i) {
    address = guests[i].local().address;
    if (!is_loopback(address)) break;
  }
  return address;
}

std::vector<std::string> host(const Rendezvous& group, const TellOwn& mine, Deadline deadline) {
  std::vector<Socket> guests = receive_guests(group, deadline);
  const std::string address = outward_address(guests);
  std::vector<std::string> texts = {mine(address)};
  Document all = Document::list({Document::string(texts.front())});
  try {
    for (std::size_t i = 1; i < guests.size(); ++i) send_text(guests[i], address, deadline);
    for (std::size_t i = 1; i < guests.size(); ++i) {
      texts.push_back(receive_text(guests[i], deadline));
      all.items.push_back(Document::string(texts.back()));
    }
    for (std::size_t i = 1; i < guests.size(); ++i) send_text(guests[i], print_json(all), deadline);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("a rank left while the group was being made: {}", error.message()),
                "see what it says itself");
  }
  return texts;
}

// A connection to rank 0, which took us in, and our machine's address by which the others are reached.
struct Welcome {
  Socket socket;
  std::string own_address;
};

Welcome come_in(const Rendezvous& group, Deadline deadline) {
  const std::string greeting = print_json(Document::map(
      {{"rank", Document::number(std::int64_t{group.rank})}, {"size", Document::number(std::int64_t{group.size})}}));
  const std::string address = value_or_throw(resolve_address(group.host));
  // The name may lead elsewhere a little later, so no connection is waited for until the end.
  const Seconds patience{std::min(5.0, deadline.remaining().value)};
  Socket socket = connect_tcp({address, group.port}, {}, Deadline::after(patience));
  send_text(socket, greeting, deadline);
  const std::string of_rank_0 = receive_text(socket, deadline);
  const std::string own = socket.local().address;
  return {std::move(socket), is_loopback(own) ? of_rank_0 : own};
}

std::vector<std::string> attend(const Rendezvous& group, const TellOwn& mine, Deadline deadline) {
  std::optional<std::string> text;
  // Rank 0 may come later, and whoever listens there before it is not the host.
  while (true) {
    std::string why;
    if (auto reception = try_to([&] { return come_in(group, deadline); }); reception) {
      if (!text) text = mine(reception->own_address);
      const auto answer = try_to([&] {
        send_text(reception->socket, *text, deadline);
        return parse_json(receive_text(reception->socket, deadline), "rank 0's answer");
      });
      if (answer && answer->items.size() == static_cast<std::size_t>(group.size)) {
        std::vector<std::string> texts;
        for (const Document& item : answer->items) texts.push_back(item.text);
        return texts;
      }
      if (!answer) why = answer.error().message();
    } else {
      why = reception.error().message();
    }
    if (deadline.expired()) {
      throw Error(ErrorCode::kTimeout, fmt::format("rank 0 was not found at {}:{}: {}", group.host, group.port, why),
                  "is it running, and does a firewall let us through?");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

}  // namespace

std::vector<std::string> meet(const Rendezvous& group, const TellOwn& mine, Deadline deadline) {
  if (group.size == 1) return {mine("127.0.0.1")};
  return group.rank == 0 ? host(group, mine, deadline) : attend(group, mine, deadline);
}

Result<std::string> resolve_address(const std::string& name) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failure = getaddrinfo(name.c_str(), nullptr, &hints, &found);
  if (failure != 0) {
    return Unexpected(Error(ErrorCode::kNotFound, fmt::format("the name '{}' has no IPv4 address: {}",
                                                              printable(name, 80), gai_strerror(failure))));
  }
  char text[INET_ADDRSTRLEN] = {};
  sockaddr_in address{};
  std::memcpy(&address, found->ai_addr, sizeof address);
  inet_ntop(AF_INET, &address.sin_addr, text, sizeof text);
  freeaddrinfo(found);
  return std::string(text);
}

}  // namespace yoke
