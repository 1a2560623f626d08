#include "yoke/link/address_changes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/ip.h"
#include "yoke/base/json.h"
#include "yoke/base/text.h"
#include "yoke/link/ip_json.h"

namespace yoke::link {
namespace {

constexpr std::string_view kPrinter = "ip -json address";
constexpr std::int64_t kForever = 0xFFFFFFFF;  // a lifetime that is none

std::vector<std::string> words_in(std::string_view text) {
  std::string plain(text);
  std::replace(plain.begin(), plain.end(), '\t', ' ');
  std::vector<std::string> words = split(plain, ' ');
  std::erase(words, "");
  return words;
}

HeldAddress read_address(const Document& entry, std::string_view interface) {
  const std::string peer = ip_value<std::string>(entry, "address");
  std::string words = ip_value<std::string>(entry, "local");
  if (!peer.empty()) words += " peer " + peer;
  words += fmt::format("/{}", ip_value<std::int64_t>(entry, "prefixlen", 32));
  if (const std::string text = ip_value<std::string>(entry, "broadcast"); !text.empty()) words += " brd " + text;
  if (const std::string text = ip_value<std::string>(entry, "scope"); !text.empty() && text != "global")
    words += " scope " + text;
  if (const std::string text = ip_value<std::string>(entry, "label"); !text.empty() && text != interface)
    words += " label " + text;
  if (const auto number = ip_value<std::int64_t>(entry, "metric", 0); number > 0)
    words += fmt::format(" metric {}", number);
  const std::int64_t valid = ip_value<std::int64_t>(entry, "valid_life_time", kForever);
  const std::int64_t preferred = ip_value<std::int64_t>(entry, "preferred_life_time", kForever);
  if (valid != kForever) words += fmt::format(" valid_lft {} preferred_lft {}", valid, std::min(preferred, valid));
  if (ip_value<bool>(entry, "noprefixroute")) words += " noprefixroute";
  return {std::move(words), ip_value<bool>(entry, "secondary")};
}

Argv address_command(std::string_view verb, std::string_view words, const std::string& interface) {
  Argv argv = {"ip", "address", std::string(verb)};
  for (std::string& word : words_in(words)) argv.push_back(std::move(word));
  argv.insert(argv.end(), {"dev", interface});
  return argv;
}

Argv route_command(std::string_view verb, std::string_view words) {
  Argv argv = {"ip", "route", std::string(verb)};
  for (std::string& word : words_in(words)) argv.push_back(std::move(word));
  return argv;
}

std::vector<std::string> names_of(const std::vector<HeldAddress>& addresses) {
  std::vector<std::string> names;
  for (const HeldAddress& address : addresses) names.push_back(address_name(address.words));
  return names;
}

bool has(const std::vector<std::string>& list, const std::string& one) {
  return std::find(list.begin(), list.end(), one) != list.end();
}

// One of two such addresses is the other's secondary: it comes after it, and may go with it.
bool in_one_subnet(const std::string& a, const std::string& b) {
  const auto first = parse_ipv4_prefix(a);
  const auto second = parse_ipv4_prefix(b);
  return first && second && first->network() == second->network();
}

// A route's destination in its table: what decides among those of one is their order.
std::string destination_of(const std::string& route) {
  const std::vector<std::string> words = words_in(route);
  const auto table = std::find(words.begin(), words.end(), "table");
  const bool has_table = table != words.end() && table + 1 != words.end();
  return (words.empty() ? "" : words.front()) + (has_table ? " " + *(table + 1) : "");
}

bool leaves_by(const std::string& route, std::string_view interface) {
  const std::vector<std::string> words = words_in(route);
  const auto device = std::find(words.begin(), words.end(), "dev");
  return device != words.end() && device + 1 != words.end() && *(device + 1) == interface;
}

}  // namespace

std::vector<HeldAddress> parse_held_addresses(std::string_view json, std::string_view interface) {
  const Document document = parse_json(json, kPrinter);
  if (document.kind != Document::Kind::kList) {
    throw Error(ErrorCode::kInvalid, fmt::format("{}: this must be a list", kPrinter));
  }
  std::vector<HeldAddress> addresses;
  for (const Document& link : document.items) {
    const Document* entries = link.find("addr_info");
    if (!entries || ip_value<std::string>(link, "ifname") != interface) continue;
    for (const Document& entry : entries->items) {
      if (ip_value<std::string>(entry, "family") == "inet") addresses.push_back(read_address(entry, interface));
    }
  }
  return addresses;
}

std::string address_name(std::string_view words) {
  std::vector<std::string> list = words_in(words);
  list.resize(std::min(list.size(), list.size() > 1 && list[1] == "peer" ? std::size_t{3} : std::size_t{1}));
  return fmt::format("{}", fmt::join(list, " "));
}

bool has_exactly(const std::vector<HeldAddress>& now, const std::string& wanted) {
  return now.size() == 1 && address_name(now.front().words) == wanted;
}

std::vector<Argv> commands_to_set_addresses(const std::vector<HeldAddress>& now, const std::string& wanted,
                                            const std::string& interface) {
  std::vector<Argv> commands;
  const std::vector<std::string> names = names_of(now);
  const bool there = has(names, wanted);
  const bool follows = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return name != wanted && in_one_subnet(name, wanted);
  });
  // The new one first, where it stands on its own: with an interface's last address all its routes go too, and ssh
  // with them where only the prefix length changes.
  if (!there && !follows) commands.push_back(address_command("add", wanted, interface));
  // The last first: secondary addresses stand behind the one that they might go with.
  for (auto address = now.rbegin(); address != now.rend(); ++address) {
    const std::string name = address_name(address->words);
    if (name != wanted) commands.push_back(address_command("del", name, interface));
  }
  // Whether a secondary one is still there now is a setting of the kernel's (promote_secondaries).
  if (follows) commands.push_back(address_command("replace", wanted, interface));
  return commands;
}

std::vector<Argv> commands_to_restore_addresses(const std::vector<std::string>& was, const std::string& ours,
                                                const std::vector<HeldAddress>& now, const std::string& interface) {
  std::vector<std::string> wanted, kept;
  for (const std::string& words : was) wanted.push_back(address_name(words));
  for (const std::string& name : names_of(now)) {
    if (has(wanted, name)) kept.push_back(name);
  }
  // Those that are missing come behind those that are there: where that is not their order, all come again.
  if (kept.size() > wanted.size() || !std::equal(kept.begin(), kept.end(), wanted.begin())) kept.clear();
  const auto goes = [&](const std::string& name) { return has(wanted, name) ? !has(kept, name) : name == ours; };
  std::vector<Argv> commands;
  for (auto address = now.rbegin(); address != now.rend(); ++address) {
    const std::string name = address_name(address->words);
    if (goes(name)) commands.push_back(address_command("del", name, interface));
  }
  for (const HeldAddress& address : commands.empty() ? std::vector<HeldAddress>{} : now) {
    if (address.secondary && !goes(address_name(address.words))) {
      commands.push_back(address_command("replace", address.words, interface));
    }
  }
  for (const std::string& words : was) {
    if (!has(kept, address_name(words))) commands.push_back(address_command("add", words, interface));
  }
  return commands;
}

std::vector<std::string> parse_routes_of(std::string_view printed, std::string_view interface) {
  std::vector<std::string> all, own;
  for (const std::string& line : split(printed, '\n')) {
    std::vector<std::string> words = words_in(line);
    // What is so at this moment is printed, but is no word that `ip` takes.
    std::erase_if(words, [](const std::string& word) {
      return word == "linkdown" || word == "dead" || word == "offload" || word == "rt_offload" || word == "trap";
    });
    // Routes over several interfaces, or by a nexthop object, are not told by one line that `ip` takes back.
    if (words.empty() || has(words, "nexthop") || has(words, "nhid") || has(words, "\\")) continue;
    const std::string route = fmt::format("{}", fmt::join(words, " "));
    if (destination_of(route).ends_with(" local")) continue;
    all.push_back(route);
    if (leaves_by(route, interface)) own.push_back(destination_of(route));
  }
  std::erase_if(all, [&](const std::string& route) { return !has(own, destination_of(route)); });
  return all;
}

std::vector<Argv> commands_to_restore_routes(const std::vector<std::string>& was, const std::vector<std::string>& now,
                                             std::string_view interface) {
  std::vector<Argv> commands;
  std::vector<std::string> after = now;
  for (const std::string& route : was) {
    if (has(now, route) || !leaves_by(route, interface)) continue;
    commands.push_back(route_command("append", route));
    after.push_back(route);
  }
  std::vector<std::string> done;
  for (const std::string& first : was) {
    const std::string destination = destination_of(first);
    if (has(done, destination)) continue;
    done.push_back(destination);
    std::vector<std::string> wanted, found;
    for (const std::string& route : was) {
      if (destination_of(route) == destination && has(after, route)) wanted.push_back(route);
    }
    for (const std::string& route : after) {
      if (has(wanted, route)) found.push_back(route);
    }
    if (wanted == found) continue;
    for (auto route = wanted.rbegin(); route != wanted.rend(); ++route) {
      commands.push_back(route_command("del", *route));
      commands.push_back(route_command("prepend", *route));
    }
  }
  return commands;
}

}  // namespace yoke::link
