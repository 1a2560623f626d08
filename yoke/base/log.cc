#include "yoke/base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdlib>

#include "yoke/base/text.h"

namespace yoke {
namespace {

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kTrace:
      return spdlog::level::trace;
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

spdlog::logger& logger() {
  static const auto instance = [] {
    // NO_COLOR (no-color.org) holds for every output of ours.
    const char* no_color = std::getenv("NO_COLOR");
    const auto mode = no_color && *no_color ? spdlog::color_mode::never : spdlog::color_mode::automatic;
    auto made = std::make_shared<spdlog::logger>("yoke", std::make_shared<spdlog::sinks::stderr_color_sink_mt>(mode));
    made->set_pattern("%H:%M:%S %^%l%$ %v");
    return made;
  }();
  return *instance;
}

}  // namespace

void set_log_level(LogLevel level) {
  logger().set_level(to_spdlog(level));
  if (level < LogLevel::kInfo) logger().set_pattern("%H:%M:%S.%e %^%l%$ %v");
}
bool log_enabled(LogLevel level) { return logger().should_log(to_spdlog(level)); }
void log_line(LogLevel level, std::string_view text) { logger().log(to_spdlog(level), terminal_safe(text)); }

}  // namespace yoke
