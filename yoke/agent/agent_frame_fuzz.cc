// Any bytes as what comes from a head and from an agent: frames are read without harm, whatever is in them is a value
// or an Error, and what was read is written back to the same bytes.
#include <cstdint>
#include <string>

#include "yoke/agent/agent_frame.h"
#include "yoke/base/check.h"
#include "yoke/base/result.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace yoke;
  using namespace yoke::agent;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  AgentFrameReader reader;
  std::string written;
  const auto read_on = [&] {
    while (const auto frame = reader.next()) {
      written += encode(*frame);
      const auto question = try_to([&] { return read_question(*frame); });
      if (question)
        YOKE_CHECK(question->action == read_question(question_frame(1, question->action, question->question)).action);
      const auto answer = try_to([&] { return read_answer(*frame, "answer"); });
      if (!answer) YOKE_CHECK(!try_to([&] { return read_answer(error_frame(1, answer.error()), "again"); }));
      const auto output = try_to([&] { return read_output(*frame); });
      if (output) YOKE_CHECK(output_frame(frame->id, output->stream, output->bytes).payload == frame->payload);
      const auto time = try_to([&] { return read_time(*frame); });
    }
  };
  // In two pieces: where the cut is makes no difference.
  const std::size_t cut = size == 0 ? 0 : data[0] % size;
  const auto ignored = try_to([&] {
    reader.feed(bytes.substr(0, cut));
    read_on();
    reader.feed(bytes.substr(cut));
    read_on();
  });
  YOKE_CHECK(bytes.starts_with(written), "{} of {} bytes", written.size(), bytes.size());
  return 0;
}
