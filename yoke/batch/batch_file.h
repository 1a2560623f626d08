// The two files of a batch, in OpenAI's format. One request a line:
//   {"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": {…}}
// and one answer a line:
//   {"id": "…", "custom_id": "a", "response": {"status_code": 200, "request_id": "…", "body": {…}}, "error": null}
// Answers are collected in FILE.partial, one whole line by one write, so that a killed batch continues: a torn last
// line is cut off, and what is answered is not asked again. At the end FILE has the answers in the order of the
// requests.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/base/file_lock.h"
#include "yoke/base/files.h"

namespace yoke::batch {

struct BatchLine {
  std::string custom_id;
  std::string url;
  std::uint64_t offset = 0, size = 0;  // in the file, without the line's end
};

struct BatchInput {
  std::filesystem::path file;
  std::vector<BatchLine> lines;
};

// Error(kInvalid) names the line: no JSON, a key too few or too many, a custom_id twice, a URL or method that is none.
BatchInput read_batch_input(const std::filesystem::path& file);
// The body of one request, read again from the file. Error(kInvalid) where the file changed meanwhile.
Document read_body(const BatchInput& input, const BatchLine& line);

class BatchOutput {
 public:
  // Continues FILE.partial where there is one. Error(kConflict) where FILE exists, or where the partial file is of
  // other requests.
  BatchOutput(std::filesystem::path file, const BatchInput& input);
  bool has(const std::string& custom_id) const;
  std::size_t size() const;
  void add(const std::string& custom_id, std::string_view line);  // any thread; `line` has no newline
  // Puts the answers into the order of the requests under the file's name. All must be there.
  void finish();
  const std::filesystem::path& partial() const { return partial_; }

 private:
  void read_partial();

  struct Answer {
    std::uint64_t offset = 0, size = 0;
  };
  const BatchInput& input_;
  std::filesystem::path file_, partial_;
  mutable std::mutex mutex_;
  std::optional<FileLock> lock_;  // of the partial file
  UniqueFd fd_;
  std::uint64_t end_ = 0;
  std::map<std::string, Answer, std::less<>> answers_;
};

}  // namespace yoke::batch
