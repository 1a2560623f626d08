// yoke model make, grow and import: model folders for tests, demonstrations and measurements, and those of GGUF files.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/cli/commands.h"
#include "yoke/cli/question.h"
#include "yoke/weights/grow_model.h"
#include "yoke/weights/import_gguf.h"
#include "yoke/weights/make_model.h"

namespace yoke::cli {
namespace {

namespace fs = std::filesystem;

struct MakeArguments {
  std::string shape;
  std::string format;
  std::string head;
  int layers = 0;
  int seed = 1;
  Bytes shard_size = weights::kShardSizeUsual;
  std::string folder;
  bool yes = false;
};

struct ImportArguments {
  std::string file, folder;
  Bytes shard_size = weights::kShardSizeUsual;
};

struct GrowArguments {
  std::string model;
  std::string folder;
  int layers = 0;
  Bytes size{0};
  Bytes shard_size = weights::kShardSizeUsual;
  bool yes = false;
};

// Larger models are written only after a yes: tens of gigabytes are quickly asked for, and slowly missed.
constexpr Bytes kSizeAskedFrom{4'000'000'000};

bool may_write(const Session& session, const std::string& folder, Bytes size, bool yes) {
  if (size < kSizeAskedFrom) return true;
  std::error_code failure;
  const fs::space_info space = fs::space(fs::absolute(folder).parent_path(), failure);
  if (failure) return true;  // a folder that cannot be is refused by the writer, which says why
  const Bytes available{static_cast<std::int64_t>(std::min<std::uintmax_t>(space.available, INT64_MAX))};
  if (available < size) return true;  // likewise
  const std::string amount =
      fmt::format("{} to {}; {} free there", yoke::to_string(size), folder, yoke::to_string(available));
  if (ask(session, {.text = fmt::format("Write {}?", amount),
                    .agreed = yes,
                    .unasked = fmt::format("this writes {}, and there is no terminal to ask at", amount),
                    .hint = "--yes to write it; --layers N makes a smaller one"})) {
    return true;
  }
  session.print("Nothing was written.\n");
  return false;
}

std::vector<std::string> format_names() {
  std::vector<std::string> names;
  for (const auto& [name, format] : weights::enum_names(weights::MakeFormat{})) names.emplace_back(name);
  return names;
}

weights::HeadFormat head_format(const std::string& name) {
  if (name == "int4") return weights::HeadFormat::kInt4;
  return name == "int8" ? weights::HeadFormat::kInt8 : weights::HeadFormat::kPlain;
}

void print_written(Session& session, const std::string& folder, std::string_view what, std::int64_t layers,
                   const weights::WrittenModel& written) {
  if (session.json) {
    session.print_json(Document::map({{"folder", Document::string(folder)},
                                      {"layers", Document::number(layers)},
                                      {"bytes", Document::number(written.bytes.value)},
                                      {"files", Document::number(static_cast<std::int64_t>(written.shards))},
                                      {"seconds", Document::number(written.time.value)}}));
    return;
  }
  session.print(fmt::format("{}: {}, {} layers, {} in {} file{}, written in {}\nNext: yoke model show {}\n", folder,
                            what, layers, yoke::to_string(written.bytes), written.shards,
                            written.shards == 1 ? "" : "s", yoke::to_string(written.time), folder));
}

int make(Session& session, const MakeArguments& arguments) {
  if (arguments.shape.empty() || arguments.format.empty()) {
    throw Error(ErrorCode::kUsage,
                fmt::format("'yoke model make' needs {}", arguments.shape.empty() ? "--shape" : "--format"),
                arguments.shape.empty() ? "such as --shape llama-3.2-1b; 'yoke model shapes' lists them"
                                        : "such as --format w4a16");
  }
  weights::MakeModelOptions options{.shape = *spec::find_model_shape(arguments.shape),
                                    .format = from_json<weights::MakeFormat>(Document::string(arguments.format)),
                                    .head = head_format(arguments.head),
                                    .seed = static_cast<std::uint64_t>(arguments.seed),
                                    .shard_size = arguments.shard_size};
  if (arguments.layers > 0) options.shape.layers = arguments.layers;
  if (!may_write(session, arguments.folder, weights::made_model_size(options), arguments.yes)) return kExitOk;
  const weights::WrittenModel written = weights::make_model(arguments.folder, options);
  print_written(session, arguments.folder, fmt::format("{} with random weights", arguments.shape), options.shape.layers,
                written);
  return kExitOk;
}

CommandRow make_command() {
  return {.name = "make",
          .summary = "make a model folder of a known shape with random weights",
          .description =
              "Makes a model folder of a known shape with random weights: everything that a real one has (config, "
              "tokenizer with a chat template, safetensors in shards with their index), except that it talks "
              "nonsense. For measuring, testing and demonstrating without downloading anything.\n\n"
              "The tokenizer is that of the model that ships with yoke, with invented words up to the vocabulary of "
              "the shape. The same seed makes the same model on every machine. The folder appears when it is complete; "
              "after an error or Ctrl-C nothing is left. Above 4 GB yoke shows the size and the free space, and asks.",
          .examples = {{"yoke model make --shape llama-3.2-1b --format w4a16 made", "1.1 GB in a few seconds"},
                       {"yoke model make --shape llama-3.2-1b --format w4a16 --head int4 made", "all of it in int4"},
                       {"yoke model make --shape llama-3.1-8b --format bf16 --layers 2 made", "its first layers"}},
          .prepare = [](OptionTable& options) -> Action {
            auto chosen = std::make_shared<MakeArguments>();
            options.choice("--shape", "NAME", "a catalogued shape; 'yoke model shapes' lists them",
                           spec::model_shape_names(), chosen->shape);
            options.choice("--format", "FORMAT", "w4a16, w8a16, bf16, f16, f32, fp8 or nvfp4", format_names(),
                           chosen->format);
            options.choice("--head", "FORMAT",
                           "of embedding and head: bf16 (as the layers where those are plain), int4, int8",
                           {"bf16", "int4", "int8"}, chosen->head);
            options.value("--layers", "N", "this many layers (else those of the shape)", chosen->layers,
                          {1, weights::kMaxLayers});
            options.value("--seed", "S", "draw other weights (default 1)", chosen->seed, {.min = 0});
            options.value("--shard-size", "SIZE", "of a file of weights at most (default 5GB)", chosen->shard_size);
            options.flag("--yes", "write more than 4 GB without asking", chosen->yes);
            options.positional("DIR", "the folder to make", chosen->folder, Presence::kRequired);
            return [chosen](Session& session) { return make(session, *chosen); };
          }};
}

int grow(Session& session, const GrowArguments& arguments) {
  if ((arguments.layers != 0) == (arguments.size.value != 0)) {
    throw Error(ErrorCode::kUsage, "'yoke model grow' needs either --layers or --size",
                "how many layers in all, or how large: --layers 64, --size 2GB");
  }
  const weights::ModelFiles files(arguments.model);
  const std::int64_t layers =
      arguments.layers != 0 ? arguments.layers : weights::layers_for_size(files, arguments.size);
  if (!may_write(session, arguments.folder, weights::size_with_layers(files, layers), arguments.yes)) return kExitOk;
  const weights::WrittenModel written =
      weights::grow_model(files, arguments.folder, {.layers = layers, .shard_size = arguments.shard_size});
  print_written(session, arguments.folder, fmt::format("{} with the same answers", arguments.model), layers, written);
  return kExitOk;
}

CommandRow grow_command() {
  return {.name = "grow",
          .summary = "make a model larger without changing a single answer",
          .description =
              "Writes the same model with more layers whose outputs are exactly zero. Its answers keep every bit; what "
              "grows is the memory and the work. So a small model that answers well becomes one that a single "
              "machine cannot hold.\n\n"
              "Works on plain and quantized weights. Tokenizer, template and goldens are copied along. The model "
              "itself is only read.",
          .examples = {{"yoke model grow models/nano deep --size 2GB", "as many layers as make 2 GB"},
                       {"yoke model grow models/nano deep --layers 64", "this many in all"}},
          .prepare = [](OptionTable& options) -> Action {
            auto chosen = std::make_shared<GrowArguments>();
            options.positional("MODEL", "the folder of the model", chosen->model, Presence::kRequired);
            options.positional("DIR", "the folder to make", chosen->folder, Presence::kRequired);
            options.value("--layers", "N", "how many layers in all", chosen->layers);
            options.value("--size", "SIZE", "as many layers as make the weights this large", chosen->size);
            options.value("--shard-size", "SIZE", "of a file of weights at most (default 5GB)", chosen->shard_size);
            options.flag("--yes", "write more than 4 GB without asking", chosen->yes);
            return [chosen](Session& session) { return grow(session, *chosen); };
          }};
}

int import_model(Session& session, const ImportArguments& arguments) {
  const weights::WrittenModel written =
      weights::import_gguf(arguments.file, arguments.folder, {.shard_size = arguments.shard_size});
  if (session.json) {
    session.print_json(Document::map({{"folder", Document::string(arguments.folder)},
                                      {"bytes", Document::number(written.bytes.value)},
                                      {"files", Document::number(static_cast<std::int64_t>(written.shards))},
                                      {"seconds", Document::number(written.time.value)}}));
    return kExitOk;
  }
  session.print(fmt::format("{}: {} in {} file{}, imported from {} in {}\nNext: yoke run {} -p \"Hello\"\n",
                            arguments.folder, yoke::to_string(written.bytes), written.shards,
                            written.shards == 1 ? "" : "s", arguments.file, yoke::to_string(written.time),
                            arguments.folder));
  return kExitOk;
}

}  // namespace

CommandRow model_command() {
  return {.name = "model",
          .summary = "look at model folders, make some, copy them to all nodes",
          .description = "Looks at model folders, makes some for tests and measurements, and copies them to all nodes.",
          .examples = {{"yoke model show models/nano", "what it is"},
                       {"yoke model make --shape llama-3.2-1b --format w4a16 made", "random weights"}},
          .prepare = {},
          .subcommands = {grow_command(), model_import_command(), make_command(), model_shapes_command(),
                          model_show_command(), model_sync_command()}};
}

CommandRow model_import_command() {
  return {.name = "import",
          .summary = "make a model folder of a GGUF file, without loss",
          .description =
              "Turns a GGUF file of llama.cpp into a model folder with the same numbers: Q4_0 becomes int4 and Q8_0 "
              "int8 in groups of 32 columns, F32, F16 and BF16 stay as they are. Tokenizer and chat template come "
              "along. Families: llama (Llama, Mistral), qwen2 and qwen3, without experts. A file of another type or "
              "family is refused before anything is written.",
          .examples = {{"yoke model import model.gguf imported", "then: yoke run imported -p \"Hello\""}},
          .prepare = [](OptionTable& options) -> Action {
            auto chosen = std::make_shared<ImportArguments>();
            options.positional("FILE", "the GGUF file", chosen->file, Presence::kRequired);
            options.positional("DIR", "the folder to make", chosen->folder, Presence::kRequired);
            options.value("--shard-size", "SIZE", "of a file of weights at most (default 5GB)", chosen->shard_size);
            return [chosen](Session& session) { return import_model(session, *chosen); };
          }};
}

}  // namespace yoke::cli
