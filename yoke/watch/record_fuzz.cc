// A record is a file that somebody may have been sent.
#include <cstdlib>

#include "yoke/base/json.h"
#include "yoke/base/result.h"
#include "yoke/watch/record_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace yoke;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto ended = try_to([&] {
    watch::RecordReader record(std::string(text), "x");
    while (const auto observation = record.next()) {
      if (observation->node >= record.plan().cluster.nodes.size()) std::abort();
    }
    return true;
  });
  // Lines whose checksum is made right, so that what is behind it is reached too.
  const auto content = try_to([&] { return parse_json(text, "x"); });
  if (content) {
    watch::RecordDecoder decoder;
    const std::string line = watch::record_line(1, *content);
    const auto ignored = try_to([&] { return decoder.take(std::string_view(line).substr(0, line.size() - 1)); });
    Document copy = *content;
    const auto applied = try_to([&] { watch::apply_difference(copy, *content); });
  }
  return 0;
}
