#include "yoke/rank/rendezvous.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netdb.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "yoke/base/error.h"
#include "yoke/base/hash.h"
#include "yoke/base/json.h"
#include "yoke/base/result.h"
#include "yoke/base/text.h"
#include "yoke/rank/own_address.h"
#include "yoke/rank/peer_user.h"

namespace yoke::rank {
namespace {

using namespace literals;

constexpr std::size_t kLongestText = 1 << 20;
constexpr std::string_view kGreeting = "yoke rendezvous 3\n";

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

std::string text_of_field(const Document& document, std::string_view name) {
  const Document* field = document.find(name);
  return field ? field->text : "";
}

// What only who knows the secret can say of these two numbers of one connection.
std::string proof_of(const Rendezvous& group, std::string_view side, const std::string& guests,
                     const std::string& hosts) {
  return hmac_sha256_hex(group.secret, fmt::format("{}|{}|{}", side, guests, hosts));
}

bool may_take_part(const Rendezvous& group, const Socket& socket) {
  return group.peers != Rendezvous::Peers::kThisUser || is_of_this_user(socket);
}

// The rank that a newcomer claims and has proved; nothing where it is none that is still expected.
std::optional<std::size_t> receive_guest(const Rendezvous& group, Socket& socket, const std::vector<Socket>& guests,
                                         Deadline deadline) {
  if (!may_take_part(group, socket)) return std::nullopt;
  const auto said = try_to([&] { return parse_json(receive_text(socket, deadline), "a rank's greeting"); });
  if (!said || text_of_field(*said, "size") != fmt::format("{}", guests.size())) return std::nullopt;
  const std::string claimed = text_of_field(*said, "rank");
  std::optional<std::size_t> rank;
  for (std::size_t i = 1; i < guests.size(); ++i) {
    if (!guests[i] && claimed == fmt::format("{}", i)) rank = i;
  }
  const std::string guests_number = text_of_field(*said, "number") + "|" + claimed;
  const std::string hosts_number = random_token_hex(16);
  if (!rank) return std::nullopt;
  const auto proof = try_to([&] {
    send_text(
        socket,
        print_json(Document::map({{"number", Document::string(hosts_number)},
                                  {"proof", Document::string(proof_of(group, "host", guests_number, hosts_number))}})),
        deadline);
    return receive_text(socket, deadline);
  });
  const bool proved = proof && equal_secrets(*proof, proof_of(group, "guest", guests_number, hosts_number));
  return proved ? rank : std::nullopt;
}

Error absence(const Rendezvous& group, const std::vector<Socket>& guests) {
  std::vector<std::string> absent;
  for (std::size_t i = 1; i < guests.size(); ++i) {
    if (!guests[i]) absent.push_back(fmt::format("{}", i));
  }
  return Error(ErrorCode::kTimeout,
               fmt::format("these ranks did not come to {}:{}: {}", group.host, group.port, fmt::join(absent, ", ")),
               "are they running, does a firewall let them through, and have all the same YOKE_SECRET?");
}

// By rank; nobody at 0.
std::vector<Socket> receive_guests(const Rendezvous& group, Deadline deadline) {
  Socket listener = listen_tcp({group.listen_on, group.port});
  std::vector<Socket> guests(static_cast<std::size_t>(group.size));
  for (int missing = group.size - 1; missing > 0;) {
    auto socket = try_to([&] { return listener.accept(deadline); });
    if (!socket && deadline.expired()) throw absence(group, guests);
    if (!socket) throw socket.error();
    const Seconds patience{std::min(2.0, deadline.remaining().value)};  // a silent client holds nobody up for long
    if (const auto rank = receive_guest(group, *socket, guests, Deadline::after(patience))) {
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
                "see its own output");
  }
  return texts;
}

// A connection to rank 0, which took us in, and our machine's address by which the others are reached.
struct HandshakeReply {
  Socket socket;
  std::string own_address;
};

HandshakeReply come_in(const Rendezvous& group, Deadline deadline) {
  const std::string number = random_token_hex(16);
  const std::string greeting = print_json(Document::map({{"rank", Document::number(std::int64_t{group.rank})},
                                                         {"size", Document::number(std::int64_t{group.size})},
                                                         {"number", Document::string(number)}}));
  const std::string address = value_or_throw(resolve_address(group.host, deadline));
  // The name may lead elsewhere a little later, so no connection is waited for until the end.
  const Seconds patience{std::min(5.0, deadline.remaining().value)};
  Socket socket = connect_tcp({address, group.port}, {}, Deadline::after(patience));
  send_text(socket, greeting, deadline);
  const Document challenge = parse_json(receive_text(socket, deadline), "rank 0's greeting");
  const std::string own_number = fmt::format("{}|{}", number, group.rank);
  const std::string hosts_number = text_of_field(challenge, "number");
  const bool proved =
      equal_secrets(text_of_field(challenge, "proof"), proof_of(group, "host", own_number, hosts_number));
  // Only now: until it has taken the connection, the kernel does not say whose its end is.
  if (!proved || !may_take_part(group, socket)) {
    throw Error(ErrorCode::kPermission,
                fmt::format("{} does not know the secret of this group, or is another user's", socket.peer()));
  }
  send_text(socket, proof_of(group, "guest", own_number, hosts_number), deadline);
  const std::string of_rank_0 = receive_text(socket, deadline);
  const std::string own = socket.local().address;
  return {std::move(socket), is_loopback(own) ? of_rank_0 : own};
}

std::vector<std::string> attend(const Rendezvous& group, const TellOwn& mine, Deadline deadline) {
  std::optional<std::string> text;
  // Rank 0 may come later, and the one that listens there before it is not the host.
  std::string why;
  const auto note = [&](const Error& error) {
    if (why.empty() || !deadline.expired()) why = error.message();  // what was cut off at the end tells nothing
  };
  while (true) {
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
      if (!answer) note(answer.error());
    } else {
      note(reception.error());
    }
    if (deadline.expired()) {
      throw Error(ErrorCode::kTimeout, fmt::format("rank 0 was not found at {}:{}: {}", group.host, group.port, why),
                  "is it running, does a firewall let us through, and have all ranks the same YOKE_SECRET?");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

}  // namespace

std::vector<std::string> meet(const Rendezvous& group, const TellOwn& mine, Deadline deadline) {
  if (group.size == 1) return {mine("127.0.0.1")};
  return group.rank == 0 ? host(group, mine, deadline) : attend(group, mine, deadline);
}

namespace {

Result<std::string> ask_resolver(const std::string& name) {
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

struct Lookup {
  std::mutex mutex;
  std::condition_variable done;
  std::optional<Result<std::string>> answer;
};

}  // namespace

// The resolver has no limit of its own that we could set: a thread waits for it, and is left where it takes too long.
Result<std::string> resolve_address(const std::string& name, Deadline deadline) {
  auto lookup = std::make_shared<Lookup>();
  std::thread([lookup, name] {
    Result<std::string> answer = ask_resolver(name);
    const std::lock_guard lock(lookup->mutex);
    lookup->answer = std::move(answer);
    lookup->done.notify_all();
  }).detach();
  std::unique_lock lock(lookup->mutex);
  const Seconds limit = std::min(deadline.remaining(), Seconds{3600});
  if (lookup->done.wait_for(lock, to_chrono(limit), [&] { return lookup->answer.has_value(); }))
    return *std::move(lookup->answer);
  return Unexpected(
      Error(ErrorCode::kTimeout,
            fmt::format("the name '{}' was not resolved within {}", printable(name, 80), to_string(limit)),
            "does the name server of /etc/resolv.conf answer? An address needs none"));
}

}  // namespace yoke::rank
