#include "yoke/cli/question.h"

#include <unistd.h>

#include "yoke/base/error.h"
#include "yoke/base/text.h"
#include "yoke/cli/typed_line.h"

namespace yoke {

bool ask(const Session& session, const Question& question) {
  if (question.agreed) return true;
  if (session.json || !isatty(STDIN_FILENO)) throw Error(ErrorCode::kUsage, question.unasked, question.hint);
  session.print(question.text + " [y/N] ");
  const std::optional<std::string> answer = read_typed_line();
  if (!answer) throw Error(ErrorCode::kUsage, "the input ended before the question was answered", question.hint);
  const std::string_view word = trim(*answer);
  return word == "y" || word == "yes";
}

}  // namespace yoke
