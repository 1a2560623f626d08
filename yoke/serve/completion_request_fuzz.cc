// Any body: a request within its limits, or an error that names what is wrong, never a crash.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "yoke/base/embedded.h"
#include "yoke/serve/api_error.h"
#include "yoke/serve/completion_request.h"

namespace {

const yoke::serve::ModelText& model_text() {
  static const yoke::serve::ModelText text = [] {
    yoke::serve::ModelText made;
    made.tokenizer = yoke::text::Tokenizer::parse(*yoke::embedded_file("models/nano/tokenizer.json"), "nano");
    made.chat = yoke::text::ChatTemplate::parse(
        "{% for m in messages %}{{ m.role }}{{ m.content }}{% endfor %}{{ tools }}{# <tool_call> </think> #}", "made");
    return made;
  }();
  return text;
}

void read(yoke::serve::ApiKind kind, std::string_view body) {
  const yoke::serve::ServedModel model{.name = "nano", .text = &model_text(), .context_max = 64, .vocabulary = 2048};
  try {
    const auto request = yoke::serve::read_completion_request(kind, body, model);
    for (const auto& prompt : request.prompts) {
      const std::int64_t room = yoke::serve::answer_room(request, prompt.size(), model);
      if (prompt.empty() || std::ssize(prompt) + room > 64) std::abort();
    }
    if (request.n < 1 || request.n > 128) std::abort();
  } catch (const yoke::Error& error) {
    const int status = yoke::serve::ApiError::of(error).status();
    if (status < 400 || status > 599) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  read(yoke::serve::ApiKind::kChat, body);
  read(yoke::serve::ApiKind::kCompletion, body);
  read(yoke::serve::ApiKind::kResponses, body);
  read(yoke::serve::ApiKind::kMessages, body);
  return 0;
}
