// Steps that change the kernel's network: settings, interfaces, routes. By `ip`, or where systemd runs and netplan has
// our file by `netplan apply`, which then keeps it so.
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/files.h"
#include "yoke/base/process.h"
#include "yoke/base/text.h"
#include "yoke/link/address_changes.h"
#include "yoke/link/interfaces.h"
#include "yoke/link/netplan.h"
#include "yoke/link/step_actions.h"

namespace yoke::link {

// What an interface step may change. Routes go with the address that they need.
struct InterfaceSnapshot {
  int mtu = 0;
  bool up = false;
  std::vector<std::string> ipv4;  // as HeldAddress has them
  std::vector<std::string> ipv6;
  std::vector<std::string> routes;
  friend bool operator==(const InterfaceSnapshot&, const InterfaceSnapshot&) = default;
};

template <class Visitor>
void visit_fields(Visitor& visit, InterfaceSnapshot& state) {
  visit.required("mtu", state.mtu);
  visit.required("up", state.up);
  visit.optional("ipv4", state.ipv4);
  visit.optional("ipv6", state.ipv6);
  visit.optional("routes", state.routes);
}

namespace {

using namespace literals;
namespace fs = std::filesystem;

constexpr Seconds kSettleLimit{20};

void run_ip(const Argv& words) { run_or_throw({.argv = words, .timeout = 20_s}); }

// A dot within a name is written as a slash, and the other way round: eth0.100 in net/ipv4/conf/eth0.100.
fs::path setting_path(const std::string& name) {
  std::string path = name;
  for (char& c : path) c = c == '.' ? '/' : c == '/' ? '.' : c;
  if (path.find("..") != std::string::npos) throw Error(ErrorCode::kInvalid, "no setting has the name " + name);
  return fs::path("/proc/sys") / path;
}

class SettingAction final : public StepAction {
 public:
  explicit SettingAction(const Step& step) : step_(step), path_(setting_path(step.path)) {}

  bool satisfied() const override { return !fs::exists(path_) || value() == step_.content; }
  std::vector<std::string> commands() const override {
    return {fmt::format("sysctl -w {}={}", step_.path, step_.content)};
  }
  void apply() const override { write(step_.content); }
  Document capture(const SavedBytes&) const override { return Document::string(fs::exists(path_) ? value() : ""); }
  void restore(const Document& before, const Document&, const SavedBytes&) const override {
    if (!before.text.empty() && fs::exists(path_) && value() != before.text) write(before.text);
  }

 private:
  std::string value() const {
    const UniqueFd fd = open_file(path_, O_RDONLY);
    std::string text(256, '\0');
    text.resize(read_some(fd, text.data(), text.size(), path_));
    return std::string(trim(text));
  }
  void write(const std::string& text) const { write_all(open_file(path_, O_WRONLY), text, path_); }

  Step step_;
  fs::path path_;
};

class InterfaceAction final : public StepAction {
 public:
  explicit InterfaceAction(const Step& step) : step_(step) {}

  bool satisfied() const override {
    const LinkInterface now = look();
    return now.up && now.mtu == step_.mtu && has_exactly(addresses(), step_.address);
  }

  std::vector<std::string> commands() const override {
    if (netplan_applies()) return {"netplan apply"};
    std::vector<std::string> lines;
    for (const Argv& argv : by_ip()) lines.push_back(to_string(Command{.argv = argv}));
    return lines;
  }

  void apply() const override {
    if (netplan_applies()) {
      run_or_throw({.argv = {"netplan", "apply"}, .timeout = 120_s});
      for (const Deadline limit = Deadline::after(kSettleLimit); !satisfied() && !limit.expired();) {
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
      }
    }
    for (const Argv& argv : by_ip()) run_ip(argv);
  }

  Document capture(const SavedBytes&) const override {
    const LinkInterface now = look();
    InterfaceSnapshot state{.mtu = now.mtu, .up = now.up, .ipv4 = {}, .ipv6 = lasting_ipv6(now), .routes = routes()};
    for (HeldAddress& address : addresses()) state.ipv4.push_back(std::move(address.words));
    return to_document(state);
  }

  // Only what differs is touched: after a reboot that may be nothing.
  void restore(const Document& before, const Document&, const SavedBytes&) const override {
    const auto was = from_json<InterfaceSnapshot>(before);
    const auto now = find();
    if (!now) return;  // it is gone, and what we did with it
    // What somebody else has set since is theirs.
    if (now->mtu == step_.mtu && now->mtu != was.mtu) {
      run_ip({"ip", "link", "set", "dev", step_.interface, "mtu", std::to_string(was.mtu)});
    }
    if (now->up != was.up) run_ip({"ip", "link", "set", "dev", step_.interface, was.up ? "up" : "down"});
    for (const Argv& argv : commands_to_restore_addresses(was.ipv4, step_.address, addresses(), step_.interface)) {
      run_ip(argv);
    }
    for (const Argv& argv : commands_to_restore_routes(was.routes, routes(), step_.interface)) run_ip(argv);
    // IPv6 is on again: its setting comes after this step, and is undone before it.
    const std::vector<std::string> ipv6 = lasting_ipv6(*now);
    for (const std::string& address : was.ipv6) {
      const bool there = std::find(ipv6.begin(), ipv6.end(), address) != ipv6.end();
      if (!there) run_ip({"ip", "address", "add", address, "dev", step_.interface});
    }
  }

 private:
  // The kernel makes a link's own IPv6 address by itself, again each time: it is nobody's setting.
  static std::vector<std::string> lasting_ipv6(const LinkInterface& interface) {
    std::vector<std::string> addresses = interface.ipv6;
    std::erase_if(addresses, [](const std::string& address) { return address.starts_with("fe80:"); });
    return addresses;
  }

  std::optional<LinkInterface> find() const {
    const std::vector<LinkInterface> all = read_link_interfaces();
    const LinkInterface* found = find_link_interface(all, step_.interface);
    return found ? std::optional(*found) : std::nullopt;
  }

  LinkInterface look() const {
    if (const auto found = find()) return *found;
    throw Error(ErrorCode::kNotFound, fmt::format("there is no interface '{}'", printable(step_.interface, 40)),
                "'ip link' shows the names: correct the rails in the cluster file");
  }

  std::vector<HeldAddress> addresses() const {
    const Argv argv = {"ip", "-json", "-4", "address", "show", "dev", step_.interface};
    return parse_held_addresses(run_or_throw({.argv = argv, .timeout = 20_s}).out, step_.interface);
  }

  std::vector<std::string> routes() const {
    const Argv argv = {"ip", "-4", "-o", "route", "show", "table", "all"};
    return parse_routes_of(run_or_throw({.argv = argv, .timeout = 20_s}).out, step_.interface);
  }

  std::vector<Argv> by_ip() const {
    const LinkInterface now = look();
    std::vector<Argv> commands;
    if (now.mtu != step_.mtu) {
      commands.push_back({"ip", "link", "set", "dev", step_.interface, "mtu", std::to_string(step_.mtu)});
    }
    if (!now.up) commands.push_back({"ip", "link", "set", "dev", step_.interface, "up"});
    for (Argv& argv : commands_to_set_addresses(addresses(), step_.address, step_.interface)) {
      commands.push_back(std::move(argv));
    }
    return commands;
  }

  Step step_;
};

class RouteAction final : public StepAction {
 public:
  explicit RouteAction(const Step& step) : step_(step) {}

  bool satisfied() const override { return now().find("via " + step_.via + " ") != std::string::npos; }
  std::vector<std::string> commands() const override { return {to_string(Command{.argv = argv("replace")})}; }
  void apply() const override { run_ip(argv("replace")); }
  Document capture(const SavedBytes&) const override { return Document::string(now()); }

  void restore(const Document& before, const Document&, const SavedBytes&) const override {
    if (now() == before.text) return;
    if (satisfied()) run_ip(argv("del"));
    if (before.text.empty()) return;
    std::vector<std::string> words = {"ip", "route", "replace"};
    for (const std::string& word : split(before.text, ' ')) {
      if (!word.empty()) words.push_back(word);
    }
    run_ip(words);
  }

 private:
  std::vector<std::string> argv(const std::string& verb) const {
    return {"ip", "route", verb, step_.address, "via", step_.via, "dev", step_.interface};
  }
  // As `ip` prints it, which is what `ip` reads; of several the one that counts comes first.
  std::string now() const {
    const Outcome outcome =
        run_or_throw({.argv = {"ip", "-4", "route", "show", "exact", step_.address}, .timeout = 20_s});
    const std::string first(trim(split(outcome.out, '\n').front()));
    return first.empty() ? "" : first + " ";
  }

  Step step_;
};

}  // namespace

std::unique_ptr<StepAction> make_setting_action(const Step& step) { return std::make_unique<SettingAction>(step); }
std::unique_ptr<StepAction> make_interface_action(const Step& step) { return std::make_unique<InterfaceAction>(step); }
std::unique_ptr<StepAction> make_route_action(const Step& step) { return std::make_unique<RouteAction>(step); }

}  // namespace yoke::link
