// Asks a server for every line of a batch that has no answer yet, several at once.
#pragma once
#include <functional>
#include <string>

#include "yoke/base/units.h"
#include "yoke/batch/batch_file.h"
#include "yoke/http/http_answer.h"

namespace yoke::batch {

struct BatchOptions {
  int parallel = 32;
  bool drop_model = false;  // the server has one model, whatever the requests call it
  Seconds patience{600};    // for a server that does not answer, or is busy
  Seconds first_pause{0.5};
  std::function<void(std::size_t done, std::size_t failed)> on_progress = {};  // in the caller's thread
};

struct BatchReport {
  std::size_t requests = 0;
  std::size_t before = 0;  // answered by an earlier run
  std::size_t failed = 0;  // of this run: the server refused the request
  Seconds time{0};
};

// One question; throws where the server cannot be reached. Called from several threads.
using AskServer = std::function<http::HttpAnswer(const std::string& url, const std::string& body)>;

// Refusals (status 400 and the like) are answers of the batch. A server that is away or busy is asked again with
// growing pauses; after `patience` the batch ends with Error(kUnavailable), and what was answered is kept. Ctrl-C ends
// it too.
BatchReport run_batch(const BatchInput& input, BatchOutput& output, const AskServer& ask, const BatchOptions& options);

// The line of an answer.
std::string answer_line(const std::string& custom_id, const http::HttpAnswer& answer);
// A server that will answer later: 408, 429 and 5xx.
bool is_passing(int status);

}  // namespace yoke::batch
