// YOKE_CHECK(condition, "format", values…) for what must hold whatever the user does. Always on. A failure is a bug:
// it prints the condition, the values, host and rank, and aborts; nothing catches it.
//
//   YOKE_CHECK(offset + size <= storage.size(), "view of {} bytes at {}", size, offset);
//   YOKE_CHECK_EQ(q.rows(), k.rows());
#pragma once
#include <fmt/format.h>

#include <string>
#include <string_view>

namespace yoke {

// The rank that this process is, for the messages of failed checks. Set once when a rank starts.
void set_check_rank(int rank);

namespace check_detail {
[[noreturn]] void fail(const char* file, int line, std::string_view condition, const std::string& values);
inline std::string describe() { return {}; }
template <class... Values>
std::string describe(fmt::format_string<Values...> text, Values&&... values) {
  return fmt::format(text, std::forward<Values>(values)...);
}
}  // namespace check_detail

#define YOKE_CHECK(condition, ...)                                                                             \
  do {                                                                                                         \
    if (!(condition)) [[unlikely]]                                                                             \
      ::yoke::check_detail::fail(__FILE__, __LINE__, #condition, ::yoke::check_detail::describe(__VA_ARGS__)); \
  } while (false)

#define YOKE_CHECK_OPERATION(a, operation, b)                                               \
  do {                                                                                      \
    const auto& yoke_check_a = (a);                                                         \
    const auto& yoke_check_b = (b);                                                         \
    if (!(yoke_check_a operation yoke_check_b)) [[unlikely]]                                \
      ::yoke::check_detail::fail(__FILE__, __LINE__, #a " " #operation " " #b,              \
                                 fmt::format("{} against {}", yoke_check_a, yoke_check_b)); \
  } while (false)

#define YOKE_CHECK_EQ(a, b) YOKE_CHECK_OPERATION(a, ==, b)
#define YOKE_CHECK_LT(a, b) YOKE_CHECK_OPERATION(a, <, b)
#define YOKE_CHECK_LE(a, b) YOKE_CHECK_OPERATION(a, <=, b)
#define YOKE_CHECK_GT(a, b) YOKE_CHECK_OPERATION(a, >, b)
#define YOKE_CHECK_GE(a, b) YOKE_CHECK_OPERATION(a, >=, b)

}  // namespace yoke
