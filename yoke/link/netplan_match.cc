#include "yoke/link/netplan_match.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cctype>

#include "yoke/base/file_tree.h"
#include "yoke/base/text.h"
#include "yoke/probe/link_table.h"

namespace yoke::link {
namespace {

std::string lower(std::string_view text) {
  std::string copy(trim(text));
  std::transform(copy.begin(), copy.end(), copy.begin(), [](unsigned char c) { return std::tolower(c); });
  return copy;
}

bool fits_glob(const std::string& glob, const std::string& text) {
  return !text.empty() && fnmatch(glob.c_str(), text.c_str(), 0) == 0;
}

// A value or a list of values, of which one must fit.
bool fits_any(const Document& globs, const std::string& text) {
  if (globs.kind != Document::Kind::kList) return fits_glob(globs.text, text);
  return std::any_of(globs.items.begin(), globs.items.end(),
                     [&](const Document& glob) { return fits_glob(glob.text, text); });
}

// All that `match` tells must fit. A match that tells nothing fits every interface.
bool reaches(const Document& match, const NetplanTarget& rail) {
  if (const Document* name = match.find("name"); name && !fits_any(*name, rail.name)) return false;
  if (const Document* mac = match.find("macaddress"); mac && lower(mac->text) != lower(rail.mac)) return false;
  if (const Document* driver = match.find("driver"); driver && !fits_any(*driver, rail.driver)) return false;
  return true;
}

std::string renderer_of(const Document* map) {
  const Document* found = map ? map->find("renderer") : nullptr;
  return found ? found->text : "";
}

// As of NetworkManager's wired profiles that are tied to no interface: each is taken by one interface at a time, and
// an interface that has a profile of its own does not look for one.
bool is_free_profile(const Document& definition, const Document& match, const std::string& renderer) {
  const std::string own = renderer_of(&definition);
  return match.fields.empty() && (own.empty() ? renderer : own) == "NetworkManager";
}

const Document* ethernets_of(const NetplanFile& file) {
  const Document* network = file.content.find("network");
  return network ? network->find("ethernets") : nullptr;
}

}  // namespace

std::optional<NetplanClash> find_netplan_clash(const std::vector<NetplanFile>& files,
                                               const std::vector<NetplanTarget>& rails) {
  std::string renderer;
  for (const NetplanFile& file : files) {
    if (const std::string reported = renderer_of(file.content.find("network")); !reported.empty()) renderer = reported;
  }
  for (const NetplanFile& file : files) {
    const Document* ethernets = ethernets_of(file);
    if (!ethernets) continue;
    for (const auto& [id, definition] : ethernets->fields) {
      const Document* match = definition.find("match");
      if (!match || is_free_profile(definition, *match, renderer)) continue;
      for (const NetplanTarget& rail : rails) {
        const bool is_own = std::any_of(rails.begin(), rails.end(),
                                        [&id = id](const NetplanTarget& other) { return other.name == id; });
        // A rail's own id may say by `match` that it means this rail, and nothing else.
        if (id == rail.name ? !reaches(*match, rail) : !is_own && reaches(*match, rail)) {
          return NetplanClash{file.path, id, rail.name};
        }
      }
    }
  }
  return std::nullopt;
}

NetplanTarget read_netplan_target(const std::string& interface) {
  NetplanTarget target{.name = interface, .mac = {}, .driver = {}};
  for (const probe::LinkEntry& link : probe::read_link_table().links) {
    if (link.ifname == interface) target.mac = link.address.value_or("");
  }
  const std::string driver = fmt::format("/sys/class/net/{}/device/driver", interface);
  if (!DiskTree().exists(driver)) return target;  // a virtual interface
  const std::string place = DiskTree().resolve(driver).value_or("");
  target.driver = place.substr(place.rfind('/') + 1);
  return target;
}

}  // namespace yoke::link
