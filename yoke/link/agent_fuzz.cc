// Any line as a request to an agent, and as an answer of one: there is always an answer, and it reads back as a body or
// as an Error. The one action here hands back what it is given.
#include <cstdint>
#include <string>

#include "yoke/base/check.h"
#include "yoke/base/error.h"
#include "yoke/link/agent.h"
#include "yoke/link/step.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace yoke;
  const std::string line(reinterpret_cast<const char*>(data), size);
  const AgentActions actions = {{"echo", [](const Document& body) { return body; }},
                                {"step", [](const Document& body) { return to_json(step_from_json(body)); }}};
  const std::string answer = answer_request(actions, line);
  YOKE_CHECK(answer.find('\n') == std::string::npos, "{}", answer);
  for (const std::string& text : {answer, line}) {
    try {
      read_answer_line(text);
    } catch (const Error& error) {
      YOKE_CHECK(!error.message().empty() || text == line, "{}", text);
    }
  }
  return 0;
}
