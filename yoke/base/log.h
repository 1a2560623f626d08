// The log: lines on standard error with time and level. Lower layers never log above debug: they return or throw, and
// the top reports once.
#pragma once
#include <fmt/format.h>

#include <string_view>

namespace yoke {

// kDebug is -v: each program run, file read and decision. kTrace is -vv: what goes over the wire.
enum class LogLevel { kTrace, kDebug, kInfo, kWarning, kError };

void set_log_level(LogLevel level);  // kInfo at the start; below it lines have milliseconds
bool log_enabled(LogLevel level);
void log_line(LogLevel level, std::string_view text);

template <class... Values>
void log(LogLevel level, fmt::format_string<Values...> text, Values&&... values) {
  if (log_enabled(level)) log_line(level, fmt::format(text, std::forward<Values>(values)...));
}

}  // namespace yoke
