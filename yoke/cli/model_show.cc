// yoke model show and shapes: what a model folder is, and which shapes yoke knows.
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <memory>

#include "yoke/base/error.h"
#include "yoke/cli/commands.h"
#include "yoke/models/model_parts.h"
#include "yoke/report/table.h"
#include "yoke/weights/model_folder.h"
#include "yoke/weights/model_summary.h"

namespace yoke::cli {
namespace {

constexpr std::int64_t kBf16Bytes = 2;
constexpr std::size_t kTableWidth = 100;

// 8030261248 as "8.03 billion".
std::string people_count(std::int64_t count) {
  const auto number = static_cast<double>(count);
  if (number >= 1e9) return fmt::format("{:.2f} billion", number / 1e9);
  if (number >= 1e6) return fmt::format("{:.2f} million", number / 1e6);
  return fmt::format("{}", count);
}

Bytes kv_bytes_per_token(const spec::ModelShape& shape) {
  return {spec::count_kv_values_per_token(shape) * kBf16Bytes};
}

std::string rope_text(const spec::ModelShape& shape) {
  std::string text = fmt::format("base {:g}", shape.rope_theta);
  if (shape.rope_scaling) text += fmt::format(", llama3 scaling by {:g}", shape.rope_scaling->factor);
  return text;
}

report::Table facts_table(const weights::ModelSummary& summary, const models::ModelTextParts& text) {
  const spec::ModelShape& shape = summary.shape;
  const auto number = [](std::int64_t value) { return fmt::format("{}", value); };
  report::Table table{.columns = {{}, {.fit = report::ColumnFit::kShrinks}}};
  table.rows = {
      {"architecture", std::string(spec::class_name(shape.architecture)) +
                           (summary.catalogued.empty() ? "" : fmt::format(" (shape of {})", summary.catalogued))},
      {"parameters", people_count(summary.parameters)},
      {"weights", fmt::format("{} in {} file{}", yoke::to_string(summary.bytes), summary.files.size(),
                              summary.files.size() == 1 ? "" : "s")},
      {"quantization", summary.quantization.empty() ? "none" : summary.quantization},
      {"layers", number(shape.layers)},
      {"width", fmt::format("{}, MLP {}", shape.width, shape.mlp_width)},
      {"heads", fmt::format("{} of {}, {} for keys and values", shape.heads, shape.head_width, shape.kv_heads)},
      {"head", shape.tied ? "tied to the embedding" : "of its own"},
      {"vocabulary", number(shape.vocabulary)},
      {"context", fmt::format("{} tokens", shape.context)},
      {"rope", rope_text(shape)},
      {"KV cache",
       fmt::format("{} a token in bf16, {} for the whole context", yoke::to_string(kv_bytes_per_token(shape)),
                   yoke::to_string(kv_bytes_per_token(shape) * shape.context))},
      {"tokenizer", text.tokenizer},
      {"chat template", text.chat_template}};
  return table;
}

report::Table kinds_table(const weights::ModelSummary& summary) {
  report::Table table{.title = "Stored as",
                      .columns = {{.header = "format"},
                                  {.header = "tensors", .align = report::TextAlign::kRight},
                                  {.header = "parameters", .align = report::TextAlign::kRight},
                                  {.header = "size", .align = report::TextAlign::kRight}}};
  for (const weights::StoredKind& kind : summary.kinds) {
    table.rows.push_back({kind.name, fmt::format("{}", kind.tensors),
                          kind.parameters == 0 ? "" : people_count(kind.parameters), yoke::to_string(kind.bytes)});
  }
  return table;
}

report::Table files_table(const weights::ModelSummary& summary) {
  report::Table table{.title = "Files",
                      .columns = {{.header = "file"}, {.header = "size", .align = report::TextAlign::kRight}}};
  for (const weights::ModelFileSize& file : summary.files)
    table.rows.push_back({file.name, yoke::to_string(file.bytes)});
  return table;
}

constexpr int kRanksShown = 16;

report::Table shares_table(const std::vector<models::RankShare>& shares) {
  report::Table table{.title = "Each rank would hold",
                      .columns = {{.header = "ranks", .align = report::TextAlign::kRight},
                                  {.header = "weights", .align = report::TextAlign::kRight},
                                  {.header = "cache a token (f32)", .align = report::TextAlign::kRight}}};
  for (const models::RankShare& share : shares) {
    table.rows.push_back(
        {fmt::format("{}", share.ranks), yoke::to_string(share.weights), yoke::to_string(share.cache_per_token)});
  }
  return table;
}

Document shares_json(const std::vector<models::RankShare>& shares) {
  Document list = Document::list();
  for (const models::RankShare& share : shares) {
    list.items.push_back(Document::map({{"ranks", Document::number(std::int64_t{share.ranks})},
                                        {"weights_bytes", Document::number(share.weights.value)},
                                        {"cache_bytes_per_token", Document::number(share.cache_per_token.value)}}));
  }
  return list;
}

Document shape_json(const spec::ModelShape& shape) {
  const auto number = [](std::int64_t value) { return Document::number(value); };
  return Document::map({{"architecture", Document::string(std::string(spec::class_name(shape.architecture)))},
                        {"layers", number(shape.layers)},
                        {"width", number(shape.width)},
                        {"heads", number(shape.heads)},
                        {"kv_heads", number(shape.kv_heads)},
                        {"head_width", number(shape.head_width)},
                        {"mlp_width", number(shape.mlp_width)},
                        {"vocabulary", number(shape.vocabulary)},
                        {"context", number(shape.context)},
                        {"tied", Document::boolean(shape.tied)},
                        {"kv_bytes_per_token", number(kv_bytes_per_token(shape).value)}});
}

Document summary_json(const std::string& folder, const weights::ModelSummary& summary,
                      const models::ModelTextParts& text) {
  const auto number = [](std::int64_t value) { return Document::number(value); };
  Document kinds = Document::list();
  for (const weights::StoredKind& kind : summary.kinds) {
    kinds.items.push_back(Document::map({{"format", Document::string(kind.name)},
                                         {"tensors", number(kind.tensors)},
                                         {"parameters", number(kind.parameters)},
                                         {"bytes", number(kind.bytes.value)}}));
  }
  Document files = Document::list();
  for (const weights::ModelFileSize& file : summary.files) {
    files.items.push_back(Document::map({{"name", Document::string(file.name)}, {"bytes", number(file.bytes.value)}}));
  }
  Document document = Document::map({{"folder", Document::string(folder)}});
  for (auto& field : shape_json(summary.shape).fields) document.fields.push_back(std::move(field));
  document.add("catalogued", summary.catalogued.empty() ? Document::null() : Document::string(summary.catalogued));
  document.add("parameters", number(summary.parameters));
  document.add("bytes", number(summary.bytes.value));
  document.add("quantization",
               summary.quantization.empty() ? Document::null() : Document::string(summary.quantization));
  document.add("stored", std::move(kinds));
  document.add("files", std::move(files));
  document.add("tokens", text.tokens ? number(*text.tokens) : Document::null());
  document.add("chat_template", Document::boolean(text.has_chat_template));
  return document;
}

int show(Session& session, const std::string& word) {
  // Named as `yoke run` takes it; a folder that is there is looked at, whatever it lacks.
  std::error_code ignored;
  const std::string folder = std::filesystem::exists(word, ignored) ? word : weights::find_model_folder(word).native();
  const weights::ModelFiles files(folder);
  const weights::ModelSummary summary = weights::summarize_model(files);
  const std::vector<models::RankShare> shares = models::rank_shares(files, kRanksShown);
  const models::ModelTextParts text = models::inspect_text(folder);
  if (session.json) {
    Document document = summary_json(folder, summary, text);
    document.add("shares", shares_json(shares));
    session.print_json(document);
    return kExitOk;
  }
  std::string out = folder + "\n";
  for (const report::Table& table :
       {facts_table(summary, text), kinds_table(summary), shares_table(shares), files_table(summary)}) {
    out += "\n" + report::render_text(table, report::for_output(kTableWidth));
  }
  session.print(out);
  return kExitOk;
}

int list_shapes(Session& session) {
  Document all = Document::list();
  report::Table table{.columns = {{.header = "shape"},
                                  {.header = "architecture"},
                                  {.header = "parameters", .align = report::TextAlign::kRight},
                                  {.header = "layers", .align = report::TextAlign::kRight},
                                  {.header = "width", .align = report::TextAlign::kRight},
                                  {.header = "vocabulary", .align = report::TextAlign::kRight},
                                  {.header = "context", .align = report::TextAlign::kRight}}};
  for (const spec::ModelShape& shape : spec::model_catalogue()) {
    Document row = Document::map({{"name", Document::string(std::string(shape.name))},
                                  {"parameters", Document::number(spec::count_parameters(shape))}});
    for (auto& field : shape_json(shape).fields) row.fields.push_back(std::move(field));
    all.items.push_back(std::move(row));
    table.rows.push_back({std::string(shape.name), std::string(spec::to_string(shape.architecture)),
                          people_count(spec::count_parameters(shape)), fmt::format("{}", shape.layers),
                          fmt::format("{}", shape.width), fmt::format("{}", shape.vocabulary),
                          fmt::format("{}", shape.context)});
  }
  if (session.json) {
    session.print_json(Document::map({{"shapes", std::move(all)}}));
  } else {
    session.print(report::render_text(table, report::for_output(kTableWidth)));
  }
  return kExitOk;
}

}  // namespace

CommandRow model_show_command() {
  return {.name = "show",
          .summary = "what a model folder holds: shape, formats, sizes, tokenizer",
          .description =
              "Says what a model folder is: its architecture and shape, how many parameters are stored in which "
              "format, what each rank would hold, the files and their sizes, what its KV cache needs, whether a "
              "tokenizer and a chat template are there. Only headers are read, so that it takes no longer for a large "
              "model.",
          .examples = {{"yoke model show models/nano", "for people"},
                       {"yoke model show models/nano --json", "for scripts"}},
          .prepare = [](OptionTable& options) -> Action {
            auto folder = std::make_shared<std::string>();
            options.positional("DIR", "the folder of the model", *folder, Presence::kRequired);
            return [folder](Session& session) { return show(session, *folder); };
          }};
}

CommandRow model_shapes_command() {
  return {.name = "shapes",
          .summary = "the shapes of models that yoke knows by name",
          .description = "Lists the shapes of models that yoke knows by name, for 'yoke model make --shape'.",
          .examples = {{"yoke model shapes", "for people"}, {"yoke model shapes --json", "with all sizes"}},
          .prepare = [](OptionTable&) -> Action { return list_shapes; }};
}

}  // namespace yoke::cli
