// Many clients that stream from one server of OpenAI's kind, each with a connection of its own, and when each piece of
// each answer came. Prompts are token ids, so that two servers of one model read the same.
//
//   const std::vector<StreamRecord> streams = run_streams({.server = {"127.0.0.1", 8000}, .streams = 8});
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/socket.h"
#include "yoke/base/units.h"

namespace yoke::serve {

struct StreamLoad {
  Endpoint server;
  std::optional<std::string> key = {};
  int streams = 8;
  int prompt = 16;  // tokens
  int tokens = 64;  // of each answer
  double temperature = 0;
  std::uint64_t seed = 1;  // another seed asks other prompts
  Seconds limit{600};
  std::function<void()> on_all_begun = {};  // each stream has its first token; from one of its threads
};

struct StreamRecord {
  std::string text;
  std::int64_t tokens = 0;              // as the server counts them, else the pieces of text
  bool is_complete = false;             // "[DONE]" came, and no error before
  std::string error = {};               // why not
  std::vector<Seconds> pieces_at = {};  // since it was asked

  Seconds first() const { return pieces_at.empty() ? Seconds{} : pieces_at.front(); }
  Seconds per_token() const;  // from the first to the last
  Seconds longest_pause() const;
};

// In the order of the streams. What goes wrong with one is its record's error.
std::vector<StreamRecord> run_streams(const StreamLoad& load);

// The body that stream `number` sends.
std::string stream_request(const StreamLoad& load, int number);
// Takes one event of a stream.
void take_stream_event(const std::string& data, Seconds at, StreamRecord& record);

}  // namespace yoke::serve
