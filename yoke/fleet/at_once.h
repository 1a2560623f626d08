// The same for several nodes at once, each in a thread of its own.
//
//   const auto machines = at_once(3, {}, [&](std::size_t i) { return probe(nodes[i]); });   // vector<Result<Machine>>
#pragma once
#include <chrono>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "yoke/base/result.h"

namespace yoke::fleet {

// Called several times a second while the first `done` have ended, in the caller's thread.
using WhileWaiting = std::function<void(std::size_t done)>;

// In the order of the numbers; one that fails does not keep the others. An interrupt is thrown, once all have ended.
template <class Function>
auto at_once(std::size_t count, const WhileWaiting& waiting, Function function)
    -> std::vector<Result<decltype(function(std::size_t{}))>> {
  using Answer = Result<decltype(function(std::size_t{}))>;
  std::vector<std::future<Answer>> tasks;
  for (std::size_t i = 0; i < count; ++i) {
    tasks.push_back(std::async(std::launch::async, [&function, i] { return try_to([&] { return function(i); }); }));
  }
  std::vector<Answer> answers;
  std::optional<Error> interrupt;
  for (auto& task : tasks) {
    while (task.wait_for(std::chrono::milliseconds(100)) != std::future_status::ready) {
      if (waiting) waiting(answers.size());
    }
    answers.push_back(task.get());
    if (!answers.back() && answers.back().error().code() == ErrorCode::kInterrupted) interrupt = answers.back().error();
  }
  if (interrupt) throw Error(*interrupt);
  return answers;
}

// All values; where some failed one Error that names each.
template <class T>
std::vector<T> all_or_throw(std::vector<Result<T>> answers) {
  std::vector<T> values;
  std::optional<Error> first;
  std::string others;
  for (Result<T>& answer : answers) {
    if (answer) {
      values.push_back(*std::move(answer));
    } else if (!first) {
      first = answer.error();
    } else {
      others += "; also: " + answer.error().message();
    }
  }
  if (first && others.empty()) throw Error(*first);
  if (first) throw Error(first->code(), first->message() + others, first->hint());
  return values;
}

}  // namespace yoke::fleet
