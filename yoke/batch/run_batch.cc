#include "yoke/batch/run_batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <thread>

#include "yoke/base/clock.h"
#include "yoke/base/error.h"
#include "yoke/base/hash.h"
#include "yoke/base/interrupt.h"
#include "yoke/base/json.h"
#include "yoke/base/result.h"
#include "yoke/base/text.h"

namespace yoke::batch {
namespace {

class BatchRun {
 public:
  BatchRun(const BatchInput& input, BatchOutput& output, const AskServer& ask, const BatchOptions& options)
      : input_(input), output_(output), ask_(ask), options_(options) {}

  void run() {
    std::vector<std::thread> workers;
    const std::size_t count = std::min<std::size_t>(static_cast<std::size_t>(options_.parallel), input_.lines.size());
    running_ = count;
    for (std::size_t i = 0; i < count; ++i) workers.emplace_back([this] { work(); });
    const auto interrupted = try_to([&] { watch(); });
    ends_ = true;
    for (std::thread& worker : workers) worker.join();
    if (!interrupted) throw Error(interrupted.error());
    if (failure_) std::rethrow_exception(failure_);
  }
  std::size_t failed() const { return failed_; }

 private:
  void watch() {
    while (running_ > 0) {
      throw_if_interrupted();
      if (options_.on_progress) options_.on_progress(output_.size(), failed_);
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }

  void work() noexcept {
    try {
      for (std::size_t at = next_++; at < input_.lines.size() && !ends_; at = next_++) {
        const BatchLine& line = input_.lines[at];
        if (!output_.has(line.custom_id)) answer(line);
      }
    } catch (...) {
      const std::scoped_lock lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
      ends_ = true;
    }
    --running_;
  }

  void answer(const BatchLine& line) {
    Document body = read_body(input_, line);
    if (options_.drop_model) {
      std::erase_if(body.fields, [](const Document::Field& field) { return field.first == "model"; });
    }
    const std::string text = print_json(body, JsonLayout::kOneLine);
    const Deadline deadline = Deadline::after(options_.patience);
    Seconds pause = options_.first_pause;
    while (!ends_) {
      const auto got = try_to([&] { return ask_(line.url, text); });
      if (got && !is_passing(got->status)) {
        if (got->status != 200) ++failed_;
        output_.add(line.custom_id, answer_line(line.custom_id, *got));
        return;
      }
      if (deadline.expired()) {
        throw Error(ErrorCode::kUnavailable,
                    got ? fmt::format("the server answers with status {} only", got->status) : got.error().message(),
                    fmt::format("start the same command again: {} answers are kept", output_.size()));
      }
      wait(pause);
      pause = std::min(Seconds{2 * pause.value}, Seconds{30});
    }
  }

  void wait(Seconds pause) const {
    const Deadline end = Deadline::after(pause);
    while (!ends_ && !end.expired()) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }

  const BatchInput& input_;
  BatchOutput& output_;
  const AskServer& ask_;
  const BatchOptions& options_;
  std::atomic<std::size_t> next_{0}, running_{0}, failed_{0};
  std::atomic<bool> ends_{false};
  std::mutex mutex_;
  std::exception_ptr failure_;
};

}  // namespace

bool is_passing(int status) { return status == 408 || status == 429 || status >= 500 || status == 0; }

std::string answer_line(const std::string& custom_id, const http::HttpAnswer& answer) {
  const auto body = try_to([&] { return parse_json(answer.body, "the answer"); });
  Document error = Document::null();
  if (!body) {
    error = Document::map(
        {{"code", Document::string("invalid_answer")},
         {"message", Document::string("the server's answer is no JSON: " + printable(answer.body, 200))}});
  }
  return print_json(
      Document::map(
          {{"id", Document::string("batch_req_" + sha256_hex(custom_id).substr(0, 24))},
           {"custom_id", Document::string(custom_id)},
           {"response", Document::map({{"status_code", Document::number(std::int64_t{answer.status})},
                                       {"request_id", Document::string(answer.header("x-request-id").value_or(""))},
                                       {"body", body ? *body : Document::null()}})},
           {"error", std::move(error)}}),
      JsonLayout::kOneLine);
}

BatchReport run_batch(const BatchInput& input, BatchOutput& output, const AskServer& ask, const BatchOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  BatchReport report{.requests = input.lines.size(), .before = output.size()};
  BatchRun run(input, output, ask, options);
  run.run();
  report.failed = run.failed();
  report.time = Seconds{std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()};
  return report;
}

}  // namespace yoke::batch
