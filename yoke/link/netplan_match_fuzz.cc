// Any text as another program's netplan file: a clash names a definition that is there, and whatever it holds is taken.
#include <cstdint>
#include <string_view>

#include "yoke/base/check.h"
#include "yoke/base/error.h"
#include "yoke/base/yaml.h"
#include "yoke/link/netplan_match.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace yoke;
  using namespace yoke::link;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const NetplanFile file{"/etc/netplan/x.yaml", parse_yaml(text, "x.yaml")};
    const auto clash = find_netplan_clash({file}, {{"enp1s0f0np0", "3c:6d:66:cc:b3:b7", "mlx5_core"}});
    if (!clash) return 0;
    YOKE_CHECK(clash->interface == "enp1s0f0np0", "{}", clash->interface);
    const Document* definition = file.content.find("network")->find("ethernets")->find(clash->id);
    YOKE_CHECK(definition && definition->find("match"), "{}", clash->id);
  } catch (const Error& error) {
    YOKE_CHECK(error.code() == ErrorCode::kInvalid, "{}", error.message());
  }
  return 0;
}
