#include "yoke/serve/stream_load.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "yoke/base/clock.h"
#include "yoke/base/error.h"
#include "yoke/base/interrupt.h"
#include "yoke/base/json.h"
#include "yoke/base/rng.h"
#include "yoke/base/text.h"
#include "yoke/http/plain_client.h"
#include "yoke/serve/api_fields.h"
#include "yoke/serve/upstream_text.h"

namespace yoke::serve {
namespace {

constexpr Seconds kLoadTurn{0.2};  // between two looks at Ctrl-C
// Plain words in every vocabulary that we know: past the single bytes, before the special tokens.
constexpr std::uint32_t kFirstId = 300, kIds = 1000;

void stream_one(const StreamLoad& load, int number, StreamRecord& record, const std::function<void()>& on_begun) {
  const Deadline deadline = Deadline::after(load.limit);
  http::HttpQuestion question{.method = "POST", .path = "/v1/completions", .body = stream_request(load, number)};
  if (load.key) question.headers.emplace_back("Authorization", "Bearer " + *load.key);
  const Instant start = real_clock().now();
  http::AnswerStream stream(load.server, question, Deadline::after(std::min(load.limit, Seconds{30})));
  SseReader events;
  bool has_begun = false;
  const auto take = [&](const std::string& bytes) {
    const Seconds at = to_seconds(real_clock().now() - start);
    for (const std::string& event : events.add(bytes)) take_stream_event(event, at, record);
    if (!record.pieces_at.empty() && !std::exchange(has_begun, true)) on_begun();
  };
  const http::HttpAnswer* head = nullptr;
  std::string refusal;
  while (!stream.is_complete()) {
    if (interrupt_signal() != 0) return;
    if (deadline.expired()) throw Error(ErrorCode::kTimeout, fmt::format("no end within {}", to_string(load.limit)));
    if (!head) head = stream.head(kLoadTurn);
    if (!head) continue;
    const std::string bytes = stream.read(kLoadTurn);
    if (head->status == 200) {
      take(bytes);
    } else {
      refusal += bytes;
    }
  }
  if (!head) head = stream.head({});
  const std::string rest = stream.read({});
  if (head->status != 200) {
    throw Error(ErrorCode::kUnavailable,
                fmt::format("status {}: {}", head->status, printable(trim(refusal + rest), 200)));
  }
  take(rest);
}

}  // namespace

Seconds StreamRecord::per_token() const {
  if (tokens < 2 || pieces_at.empty()) return {};
  return (pieces_at.back() - pieces_at.front()) / static_cast<double>(tokens - 1);
}

Seconds StreamRecord::longest_pause() const {
  Seconds longest{};
  for (std::size_t i = 1; i < pieces_at.size(); ++i) longest = std::max(longest, pieces_at[i] - pieces_at[i - 1]);
  return longest;
}

std::string stream_request(const StreamLoad& load, int number) {
  std::vector<std::uint32_t> ids;
  for (int i = 0; i < load.prompt; ++i) {
    const auto at = static_cast<std::uint64_t>(number) << 32 | static_cast<std::uint32_t>(i);
    ids.push_back(kFirstId + philox(load.seed, at)[0] % kIds);
  }
  return fmt::format(R"({{"prompt":[{}],"max_tokens":{},"temperature":{},"seed":{},"ignore_eos":true,"stream":true,)"
                     R"("stream_options":{{"include_usage":true}}}})",
                     fmt::join(ids, ","), load.tokens, load.temperature,
                     load.seed + static_cast<std::uint64_t>(number));
}

void take_stream_event(const std::string& data, Seconds at, StreamRecord& record) {
  if (data == "[DONE]") {
    record.is_complete = record.error.empty();
    return;
  }
  const Document event = parse_json(data, "an event");
  if (const auto* const error = given_field(event, "error")) {
    const auto* const message = given_field(*error, "message");
    record.error = message ? message->text : print_json(*error, JsonLayout::kOneLine);
    return;
  }
  if (const auto* const usage = given_field(event, "usage")) {
    if (const auto* const made = given_field(*usage, "completion_tokens")) {
      record.tokens = api_integer(*made, "completion_tokens", 0, 1 << 30);
    }
  }
  const auto* const choices = given_field(event, "choices");
  if (!choices || choices->items.empty()) return;
  const auto* const text = given_field(choices->items.front(), "text");
  if (!text || text->text.empty()) return;
  record.text += text->text;
  record.pieces_at.push_back(at);
}

std::vector<StreamRecord> run_streams(const StreamLoad& load) {
  std::vector<StreamRecord> records(static_cast<std::size_t>(load.streams));
  std::atomic<int> begun{0};
  const auto on_begun = [&] {
    if (++begun == load.streams && load.on_all_begun) load.on_all_begun();
  };
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < load.streams; ++i) {
      threads.emplace_back([&, i] {
        StreamRecord& record = records[static_cast<std::size_t>(i)];
        try {
          stream_one(load, i, record, on_begun);
          if (!record.is_complete && record.error.empty()) record.error = "it ended without '[DONE]'";
        } catch (const std::exception& error) {
          record.is_complete = false;
          record.error = error.what();
        }
      });
    }
  }
  throw_if_interrupted();
  for (StreamRecord& record : records) {
    if (record.tokens == 0) record.tokens = std::ssize(record.pieces_at);
  }
  return records;
}

}  // namespace yoke::serve
