#include <cstddef>
#include <cstdint>
#include <string_view>

#include "yoke/base/check.h"
#include "yoke/rank/peer_user.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view table(reinterpret_cast<const char*>(data), size);
  YOKE_CHECK_GE(yoke::rank::user_of_connection(table, {"127.0.0.1", 8080}, {"127.0.0.1", 40000}), -1);
  return 0;
}
