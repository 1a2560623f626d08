// yoke plan hardware, models, validate and explain: what plans rest on.
#include <fmt/format.h>

#include <memory>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/text.h"
#include "yoke/cli/commands.h"
#include "yoke/plan/plan_text.h"
#include "yoke/report/table.h"

namespace yoke::cli {
namespace {

constexpr std::size_t kCatalogueWidth = 110;

Document figure_json(const spec::Figure& figure) {
  return Document::map(
      {{"value", Document::number(figure.value)}, {"source", Document::string(std::string(figure.source))}});
}

Document hardware_json(const spec::HardwareFacts& facts) {
  Document remarks = Document::list();
  for (const std::string_view remark : facts.remarks) remarks.items.push_back(Document::string(std::string(remark)));
  Document cables = Document::list();
  for (const spec::ApprovedCable& cable : facts.cables) {
    cables.items.push_back(Document::map({{"part", Document::string(std::string(cable.part))},
                                          {"length", Document::string(std::string(cable.length))},
                                          {"source", Document::string(std::string(cable.source))}}));
  }
  return Document::map({{"name", Document::string(std::string(facts.hardware->name))},
                        {"title", Document::string(std::string(facts.hardware->title))},
                        {"gpus", Document::number(std::int64_t{facts.hardware->gpus})},
                        {"gpu_memory", figure_json(facts.memory)},
                        {"bandwidth", figure_json(facts.bandwidth)},
                        {"bf16", figure_json(facts.bf16)},
                        {"fp8", figure_json(facts.fp8)},
                        {"fp4", figure_json(facts.fp4)},
                        {"nvlink", figure_json(facts.nvlink)},
                        {"gpu_power", figure_json(facts.gpu_power)},
                        {"idle_power", figure_json(facts.idle_power)},
                        {"load_power", figure_json(facts.load_power)},
                        {"network", figure_json(facts.nic_limit)},
                        {"remarks", std::move(remarks)},
                        {"approved_cables", std::move(cables)}});
}

// "DGX Spark" and "GB10" are names too, as people write them.
std::string usual_name(std::string name) {
  for (char& c : name) c = c == ' ' || c == '_' ? '-' : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return name;
}

int show_hardware(Session& session, const std::optional<std::string>& given) {
  const std::optional<std::string> name = given ? std::optional(usual_name(*given)) : std::nullopt;
  if (name) {
    const spec::HardwareFacts* const facts = spec::find_hardware_facts(*name);
    if (!facts) {
      const std::vector<std::string> names = spec::hardware_fact_names();
      throw Error(ErrorCode::kNotFound, fmt::format("no machine is called '{}'", printable(*name, 40)),
                  suggest(*name, names, "names"));
    }
    if (session.json) {
      session.print_json(hardware_json(*facts));
    } else {
      session.print(plan::hardware_text(*facts));
    }
    return kExitOk;
  }
  Document all = Document::list();
  report::Table table{.columns = {{.header = "name"},
                                  {.header = "GPUs", .align = report::TextAlign::kRight},
                                  {.header = "memory", .align = report::TextAlign::kRight},
                                  {.header = "bandwidth", .align = report::TextAlign::kRight},
                                  {.header = "BF16 dense", .align = report::TextAlign::kRight},
                                  {.header = "NVLink", .align = report::TextAlign::kRight},
                                  {.header = "machine", .fit = report::ColumnFit::kShrinks}}};
  for (const auto& list : {spec::hardware_facts(), spec::other_hardware_facts()}) {
    for (const spec::HardwareFacts& facts : list) {
      all.items.push_back(hardware_json(facts));
      table.rows.push_back(
          {std::string(facts.hardware->name), fmt::format("{}", facts.hardware->gpus),
           fmt::format("{} GiB", plan::short_number(facts.memory.value / 1073741824.0)),
           fmt::format("{} GB/s", plan::short_number(facts.bandwidth.value / 1e9)),
           fmt::format("{} TFLOP/s", plan::short_number(facts.bf16.value / 1e12)),
           facts.nvlink.value > 0 ? fmt::format("{} GB/s", plan::short_number(facts.nvlink.value / 1e9)) : "-",
           std::string(facts.hardware->title)});
    }
  }
  if (session.json) {
    session.print_json(Document::map({{"hardware", std::move(all)}}));
  } else {
    session.print(render_text(table, report::for_output(kCatalogueWidth)) + "Sources: yoke plan hardware NAME\n");
  }
  return kExitOk;
}

std::string billions(std::int64_t count) {
  return fmt::format("{} B", plan::short_number(static_cast<double>(count) / 1e9));
}

int show_models(Session& session) {
  Document all = Document::list();
  report::Table table{.columns = {{.header = "model"},
                                  {.header = "parameters", .align = report::TextAlign::kRight},
                                  {.header = "active", .align = report::TextAlign::kRight},
                                  {.header = "layers", .align = report::TextAlign::kRight},
                                  {.header = "cache a token", .align = report::TextAlign::kRight},
                                  {.header = "context", .align = report::TextAlign::kRight},
                                  {.header = "source", .fit = report::ColumnFit::kShrinks}}};
  for (const spec::ModelFacts& model : spec::model_facts()) {
    const spec::ModelCount count = spec::count_model(model);
    const double cache = 2 * spec::cache_values(model, 1, spec::CacheRule::kAllocated);
    table.rows.push_back({model.name, billions(count.total), model.experts > 0 ? billions(count.active) : "",
                          fmt::format("{}", model.layers), yoke::to_string(Bytes{static_cast<std::int64_t>(cache)}),
                          fmt::format("{}", model.context), model.source});
    all.items.push_back(Document::map({{"name", Document::string(model.name)},
                                       {"parameters", Document::number(count.total)},
                                       {"active", Document::number(count.active)},
                                       {"layers", Document::number(model.layers)},
                                       {"cache_bytes_per_token", Document::number(cache)},
                                       {"context", Document::number(model.context)},
                                       {"source", Document::string(model.source)}}));
  }
  report::Table images{.title = "Image models",
                       .columns = {{.header = "model"},
                                   {.header = "parameters of all parts", .align = report::TextAlign::kRight},
                                   {.header = "TFLOP a step, 1024 x 1024", .align = report::TextAlign::kRight},
                                   {.header = "source", .fit = report::ColumnFit::kShrinks}}};
  Document drawn = Document::list();
  for (const spec::ImageModelFacts& model : spec::image_model_facts()) {
    const double flop = spec::step_flop(model, 1024, 1024);
    images.rows.push_back(
        {model.name, billions(spec::image_parameters(model)), plan::short_number(flop / 1e12), model.source});
    drawn.items.push_back(Document::map({{"name", Document::string(model.name)},
                                         {"parameters", Document::number(spec::image_parameters(model))},
                                         {"flop_per_step", Document::number(flop)},
                                         {"source", Document::string(model.source)}}));
  }
  if (session.json) {
    session.print_json(Document::map({{"models", std::move(all)}, {"image_models", std::move(drawn)}}));
  } else {
    session.print(render_text(table, report::for_output(kCatalogueWidth)) + "\n" +
                  render_text(images, report::for_output(kCatalogueWidth)));
  }
  return kExitOk;
}

int run_validate(Session& session, const std::string& file) {
  const std::vector<plan::MeasuredRow> rows = plan::parse_measured(read_file(file), file);
  if (rows.empty()) {
    throw Error(ErrorCode::kInvalid, fmt::format("{} holds no measurement", file),
                "one row for each, below the header");
  }
  const plan::Validation validation = plan::validate(rows);
  if (session.json) {
    session.print_json(plan::to_json(validation));
  } else {
    session.print(plan::validation_text(validation, file));
  }
  return kExitOk;
}

int run_explain(Session& session, const std::vector<std::string>& words) {
  std::string claim;
  for (const std::string& word : words) claim += (claim.empty() ? "" : " ") + word;
  const plan::ClaimExplained explained = plan::explain_claim(claim, plan::shipped_constants());
  if (session.json) {
    session.print_json(plan::to_json(explained));
  } else {
    session.print(plan::claim_text(explained));
  }
  return explained.verdict == "impossible" ? kExitFindings : kExitOk;
}

}  // namespace

CommandRow plan_hardware_command() {
  return {.name = "hardware",
          .summary = "the machines that plans know, with a source for every figure",
          .description = "Lists the machines that plans know. With a name: every figure and its source.",
          .examples = {{"yoke plan hardware", "all"}, {"yoke plan hardware xe9780", "one, with sources"}},
          .prepare = [](OptionTable& table) -> Action {
            auto name = std::make_shared<std::optional<std::string>>();
            table.positional("NAME", "a machine", *name, Presence::kOptional);
            return [name](Session& session) { return show_hardware(session, *name); };
          }};
}

CommandRow plan_models_command() {
  return {.name = "models",
          .summary = "the models that plans know",
          .description = "Lists the models that plans know by name. Any other is read from its config.json.",
          .examples = {{"yoke plan models", "for people"}, {"yoke plan models --json", "for scripts"}},
          .prepare = [](OptionTable&) -> Action { return show_models; }};
}

CommandRow plan_validate_command() {
  return {.name = "validate",
          .summary = "predicted against measured, for a file of measurements",
          .description =
              "Reads measurements (CSV, the columns of docs/planning.md) and predicts each: error by class, the worst "
              "rows, and the headline, in which each model is predicted by constants fitted without it.",
          .examples = {{"yoke plan validate tests/data/measured.csv", "the published measurements"},
                       {"yoke plan validate mine.csv --json", "every row, for a script"}},
          .prepare = [](OptionTable& table) -> Action {
            auto file = std::make_shared<std::string>();
            table.positional("FILE", "measurements as CSV", *file, Presence::kRequired);
            return [file](Session& session) { return run_validate(session, *file); };
          }};
}

CommandRow plan_explain_command() {
  return {.name = "explain",
          .summary = "is a claimed number plausible, and what would it imply",
          .description =
              "Takes a claim as people write it and says whether it is plausible, what was expected, and how much of "
              "the memory bandwidth and of the arithmetic peak it would take. Exit status 1: impossible.",
          .examples = {{"yoke plan explain \"69 tok/s gpt-oss-120b 2xspark\"", "a published figure"},
                       {"yoke plan explain 180000 tok/s train llama-2-7b h100", "and one that cannot be"}},
          .prepare = [](OptionTable& table) -> Action {
            auto words = std::make_shared<std::vector<std::string>>();
            table.positionals("CLAIM", "a number, a model and machines, in any order", *words, Presence::kRequired);
            return [words](Session& session) { return run_explain(session, *words); };
          }};
}

}  // namespace yoke::cli
