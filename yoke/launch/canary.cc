#include "yoke/launch/canary.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>

#include "yoke/base/document.h"
#include "yoke/base/json.h"
#include "yoke/base/result.h"
#include "yoke/base/text.h"
#include "yoke/http/plain_client.h"

namespace yoke::launch {
namespace {

constexpr Seconds kTokenLimit{3};
constexpr std::chrono::milliseconds kPause{2000};

}  // namespace

double count_tokens(std::string_view metrics) {
  constexpr std::array<std::string_view, 3> kCounters = {
      "vllm:generation_tokens_total", "sglang:generation_tokens_total", "llamacpp:tokens_predicted_total"};
  double sum = -1;
  for (const std::string& line : split(metrics, '\n')) {
    for (const std::string_view counter : kCounters) {
      if (!line.starts_with(counter)) continue;
      const std::size_t blank = line.rfind(' ');
      if (blank == std::string::npos) continue;
      sum = std::max(sum, 0.0) + std::strtod(line.c_str() + blank + 1, nullptr);
    }
  }
  return sum;
}

bool is_token(int status, std::string_view body) {
  if (status != 200) return false;
  const auto answer = try_to([&] { return parse_json(body, "the answer"); });
  if (!answer) return false;
  const Document* const choices = answer->find("choices");
  return choices && !choices->items.empty();
}

Canary::Canary(int port, std::string model) : port_(port), model_(std::move(model)) {
  last_ = start_.time_since_epoch().count();
  thread_ = std::thread([this] { run(); });
}

Canary::~Canary() {
  ends_ = true;
  thread_.join();
}

Seconds Canary::silent_for() const {
  const auto last = Clock::time_point(Clock::duration(last_.load()));
  return Seconds{std::chrono::duration<double>(Clock::now() - last).count()};
}

void Canary::note_life() {
  last_ = Clock::now().time_since_epoch().count();
  if (answered_.exchange(true)) return;
  ready_after_ = std::chrono::duration<double>(Clock::now() - start_).count();
}

bool Canary::ask_token() {
  const Document body = Document::map({{"model", Document::string(model_)},
                                       {"prompt", Document::string("1")},
                                       {"max_tokens", Document::number(std::int64_t{1})},
                                       {"temperature", Document::number(std::int64_t{0})}});
  const auto answer = try_to([&] {
    return http::ask({"127.0.0.1", port_}, {"POST", "/v1/completions", print_json(body, JsonLayout::kOneLine)},
                     Deadline::after(kTokenLimit));
  });
  return answer && is_token(answer->status, answer->body);
}

bool Canary::tokens_grew() {
  const auto answer = try_to([&] {
    return http::ask({"127.0.0.1", port_}, {"GET", "/metrics", ""}, Deadline::after(Seconds{1}));
  });
  const double now = answer && answer->status == 200 ? count_tokens(answer->body) : -1;
  const double before = std::exchange(tokens_, now);
  return before >= 0 && now > before;
}

void Canary::run() {
  while (!ends_) {
    if (ask_token() || (answered_ && tokens_grew())) note_life();
    for (int i = 0; i < 20 && !ends_; ++i) std::this_thread::sleep_for(kPause / 20);
  }
}

}  // namespace yoke::launch
