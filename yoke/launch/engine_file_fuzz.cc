// Any bytes as the description of an engine: read, or refused with an Error.
#include <cstdint>

#include "yoke/base/error.h"
#include "yoke/launch/engine_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const yoke::launch::EngineFile engine = yoke::launch::parse_engine(text, "fuzz");
    for (const auto& process : engine.processes) yoke::launch::expand_words(process.command, {{"model", "m"}}, {});
  } catch (const yoke::Error&) {
  }
  return 0;
}
