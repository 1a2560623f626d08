#include "yoke/base/check.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace yoke {
namespace {
std::atomic<int> check_rank{-1};  // -1: this process is no rank
}

void set_check_rank(int rank) { check_rank = rank; }

void check_detail::fail(const char* file, int line, std::string_view condition, const std::string& values) {
  char host[256] = "unknown host";
  gethostname(host, sizeof host - 1);
  std::string where = host;
  if (check_rank >= 0) where += fmt::format(", rank {}", check_rank.load());
  // Straight to the descriptor: the log may be what broke.
  const std::string text = fmt::format("yoke: bug: check failed: {}{}{} [{}:{}, {}]\n", condition,
                                       values.empty() ? "" : ": ", values, file, line, where);
  if (write(STDERR_FILENO, text.data(), text.size()) < 0) { /* nowhere left to say it */
  }
  std::abort();
}

}  // namespace yoke
