#include "yoke/serve/engine_load.h"

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/interrupt.h"

namespace yoke::serve {
namespace {

constexpr Seconds kInterruptCheckEvery{0.05};  // for interrupts

Seconds median(std::vector<double>& values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  return Seconds{values[values.size() / 2]};
}

// splitmix64: the same numbers on every machine.
std::uint64_t mixed(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15ULL;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

}  // namespace

EngineLoad::EngineLoad(EngineHost& host) : host_(host) {
  while (true) {
    const auto event = next();
    if (!event) continue;
    if (const auto* ready = std::get_if<engine::EngineReady>(&*event)) {
      ready_ = *ready;
      return;
    }
  }
}

std::optional<engine::EngineEvent> EngineLoad::next() {
  if (const auto signal_number = host_.take_interrupt()) {
    host_.end_for(*signal_number);
    throw Error(ErrorCode::kInterrupted, "stopped by a signal");
  }
  return host_.connection().next(Deadline::after(kInterruptCheckEvery));
}

LoadRow EngineLoad::one_by_one(const std::vector<engine::Request>& requests) {
  LoadRow row{.at_once = 1};
  const Instant start = real_clock().now();
  for (const engine::Request& request : requests) run({request}, row);
  finish(row, start);
  return row;
}

LoadRow EngineLoad::at_once(const std::vector<engine::Request>& requests) {
  LoadRow row{.at_once = static_cast<int>(requests.size())};
  const Instant start = real_clock().now();
  run(requests, row);
  finish(row, start);
  return row;
}

void EngineLoad::finish(LoadRow& row, Instant start) {
  row.time = to_seconds(real_clock().now() - start);
  row.first_token = median(first_);
  row.token = median(between_);
  first_.clear();
  between_.clear();
}

void EngineLoad::run(const std::vector<engine::Request>& requests, LoadRow& row) {
  const Instant start = real_clock().now();
  std::map<std::uint64_t, Instant> last;
  for (const engine::Request& request : requests) host_.connection().submit(request);
  for (std::size_t ended = 0; ended < requests.size();) {
    const auto event = next();
    if (!event) continue;
    if (const auto* token = std::get_if<engine::TokenEvent>(&*event)) {
      const Instant now = real_clock().now();
      const auto before = last.find(token->id);
      (before == last.end() ? first_ : between_)
          .push_back(to_seconds(now - (before == last.end() ? start : before->second)).value);
      last[token->id] = now;
      row.answers[token->id].push_back(token->token.id);
      ++row.tokens;
    } else if (const auto* end = std::get_if<engine::RequestEnded>(&*event)) {
      if (end->error) throw Error(*end->error);
      ++ended;
    }
  }
}

void EngineLoad::take_tokens(const std::function<bool(std::uint64_t id)>& take) {
  while (true) {
    const auto event = next();
    if (!event) continue;
    if (const auto* end = std::get_if<engine::RequestEnded>(&*event)) {
      if (end->error) throw Error(*end->error);
      ++ended_;
    } else if (const auto* token = std::get_if<engine::TokenEvent>(&*event)) {
      if (!take(token->id)) return;
    }
  }
}

FairnessTimes EngineLoad::beside_prompt(std::int64_t tokens, int answers) {
  constexpr int kBefore = 32;  // tokens of each answer
  const std::int64_t longest = ready_.context_max - 16;
  std::vector<engine::Request> requests = random_requests(
      {.count = answers, .prompt = 8, .answer = longest - 8, .vocabulary = ready_.vocabulary, .salt = 78});
  engine::Request prompt =
      random_requests({.count = 1, .prompt = tokens, .answer = 1, .vocabulary = ready_.vocabulary, .salt = 79}).front();
  prompt.id = static_cast<std::uint64_t>(answers) + 1;

  std::map<std::uint64_t, Instant> last;
  const auto since_last = [&](std::uint64_t id, std::vector<double>& times) {
    const Instant now = real_clock().now();
    if (const auto before = last.find(id); before != last.end()) {
      times.push_back(to_seconds(now - before->second).value);
    }
    last[id] = now;
  };
  ended_ = 0;
  for (const engine::Request& request : requests) host_.connection().submit(request);
  std::vector<double> before, during;
  take_tokens([&](std::uint64_t id) {
    since_last(id, before);
    return std::ssize(before) < std::int64_t{kBefore} * answers;
  });
  before.erase(before.begin(), before.begin() + std::ssize(before) / 2);  // the first ones share steps with prompts
  const Instant asked = real_clock().now();
  host_.connection().submit(prompt);
  take_tokens([&](std::uint64_t id) {
    if (id == prompt.id) return false;
    since_last(id, during);
    return true;
  });
  const Seconds reading = to_seconds(real_clock().now() - asked);
  for (const engine::Request& request : requests) host_.connection().cancel(request.id);
  while (ended_ < answers + 1) {
    const auto event = next();
    if (event && std::holds_alternative<engine::RequestEnded>(*event)) ++ended_;
  }
  return {.tokens = tokens, .answers = answers, .before = median(before), .during = median(during), .reading = reading};
}

std::vector<engine::Request> random_requests(const RandomRequests& options) {
  std::vector<engine::Request> requests;
  for (std::int64_t i = 0; i < options.count; ++i) {
    engine::Request request{.id = static_cast<std::uint64_t>(i) + 1, .prompt = {}, .answer_max = options.answer};
    for (std::int64_t t = 0; t < options.prompt; ++t) {
      const std::uint64_t number = mixed(options.seed * 1'000'003 + static_cast<std::uint64_t>(i * options.prompt + t));
      request.prompt.push_back(static_cast<text::TokenId>(number % static_cast<std::uint64_t>(options.vocabulary)));
    }
    request.sampling.temperature = 0;
    request.cache_salt = options.salt;
    requests.push_back(std::move(request));
  }
  return requests;
}

PrefixTimes measure_prefix(EngineLoad& load, std::int64_t tokens) {
  PrefixTimes times{.tokens = tokens};
  RandomRequests options{
      .count = 1, .prompt = tokens + 8, .answer = 2, .vocabulary = load.ready().vocabulary, .salt = 77};
  std::vector<engine::Request> requests = random_requests(options);
  times.cold = load.at_once(requests).first_token;
  for (std::int64_t i = tokens; i < tokens + 8; ++i) {  // another question about the same text
    text::TokenId& id = requests[0].prompt[static_cast<std::size_t>(i)];
    id = static_cast<text::TokenId>((id + 1) % load.ready().vocabulary);
  }
  times.warm = load.at_once(requests).first_token;
  return times;
}

}  // namespace yoke::serve
