// The small model with a chat template that has tools, for tests of what a server answers with.
#pragma once
#include <filesystem>
#include <string>

#include "tests/engine_fixture.h"
#include "yoke/base/files.h"
#include "yoke/base/json.h"

namespace yoke::tests {

inline const std::string kHermesTemplate =
    "{{- bos_token }}{%- if tools %}{{- '<|user|>' + (tools | tojson) + '<|end|>' }}{%- endif %}"
    "{%- for m in messages %}{%- if m.role == 'assistant' %}{{- '<|assistant|>' + m.content }}"
    "{%- for call in m.tool_calls %}{{- '<tool_call>' + (call.function | tojson) + '</tool_call>' }}{%- endfor %}"
    "{{- '<|end|>' }}{%- else %}{{- '<|user|>' + m.content | trim + '<|end|>' }}{%- endif %}{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|assistant|>' }}{%- endif %}";

// The small model with a template that has tools.
inline std::filesystem::path model_with_template(const std::filesystem::path& folder, const std::string& source) {
  std::filesystem::create_directories(folder);
  for (const auto& entry : std::filesystem::directory_iterator(kNano)) {
    if (entry.path().filename() != "tokenizer_config.json") {
      std::filesystem::create_symlink(entry.path(), folder / entry.path().filename());
    }
  }
  Document config = parse_json(read_file(std::filesystem::path(kNano) / "tokenizer_config.json"), "config");
  for (auto& [key, value] : config.fields) {
    if (key == "chat_template") value = Document::string(source);
  }
  write_file_atomically(folder / "tokenizer_config.json", print_json(config), {});
  return folder;
}

}  // namespace yoke::tests
