#include "yoke/cli/question.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>

#include "yoke/base/error.h"
#include "yoke/base/interrupt.h"
#include "yoke/base/text.h"

namespace yoke {

bool ask(const Session& session, const Question& question) {
  if (question.agreed) return true;
  if (session.json || !isatty(STDIN_FILENO)) throw Error(ErrorCode::kUsage, question.unasked, question.hint);
  session.print(question.text + " [y/N] ");
  std::string answer;
  for (;;) {
    throw_if_interrupted();
    pollfd waiting{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    if (poll(&waiting, 1, 100) <= 0) continue;
    char c = 0;
    const ssize_t count = read(STDIN_FILENO, &c, 1);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw Error(ErrorCode::kUsage, "the input ended before the question was answered", question.hint);
    if (c == '\n') break;
    answer += c;
  }
  const std::string_view word = trim(answer);
  return word == "y" || word == "yes";
}

}  // namespace yoke
