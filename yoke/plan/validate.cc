#include "yoke/plan/validate.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace yoke::plan {
namespace {

constexpr int kSweeps = 3;
constexpr double kPull = 0.25;  // weight of |log(value/prior)|: about a quarter of a row
constexpr std::array kSteps = {0.7, 0.8, 0.9, 0.95, 1.05, 1.1, 1.2, 1.4};

struct FitRow {
  Question question;
  double measured = 1;
  double weight = 1;
  ConstantSet uses;
};

bool is_fitted(Constant id) { return id != Constant::kRoutingSkew && id != Constant::kAcceptance; }

// A fraction of something physical cannot pass it.
bool is_possible(const ConstantRow& row, double value) { return !row.unit.empty() || value <= 0.97; }

std::string model_key(const MeasuredRow& row) {
  const std::string name = row.model.substr(0, row.model.find(" ("));
  return name.empty() ? row.source : name;
}

double row_loss(const FitRow& row, const Constants& constants) {
  const double predicted = row.question.answer(constants);
  return predicted > 0 ? row.weight * std::abs(std::log(predicted / row.measured)) : 10 * row.weight;
}

// Every constant that the rows touch, from its prior: the least sum of |log(predicted/measured)|, each (model, source)
// weighted by 1/sqrt(its rows) so that one long page does not choose for a whole machine, with a pull to the prior.
Constants fit(const std::vector<const FitRow*>& rows) {
  Constants constants = prior_constants();
  std::vector<std::vector<const FitRow*>> users(kConstantCount);
  for (const FitRow* row : rows) {
    for (std::size_t i = 0; i < kConstantCount; ++i) {
      if (row->uses.test(i)) users[i].push_back(row);
    }
  }
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    for (const ConstantRow& constant : constant_table()) {
      const auto& touched = users[static_cast<std::size_t>(constant.id)];
      if (touched.empty() || !is_fitted(constant.id)) continue;
      const auto loss_at = [&](double value) {
        constants.set(constant.id, value);
        double loss = kPull * std::abs(std::log(value / constant.prior));
        for (const FitRow* row : touched) loss += row_loss(*row, constants);
        return loss;
      };
      const double before = constants.peek(constant.id);
      double best = before;
      double best_loss = loss_at(before);
      for (const double step : kSteps) {
        if (!is_possible(constant, before * step)) continue;
        const double loss = loss_at(before * step);
        if (loss < best_loss) {
          best = before * step;
          best_loss = loss;
        }
      }
      constants.set(constant.id, best);
    }
  }
  return constants;
}

std::vector<FitRow> fit_rows(const std::vector<MeasuredRow>& rows) {
  std::map<std::pair<std::string, std::string>, int> pages;
  for (const MeasuredRow& row : rows) ++pages[{model_key(row), row.source}];
  const Constants shipped = shipped_constants();
  std::vector<FitRow> out;
  for (const MeasuredRow& row : rows) {
    FitRow fit_row{.question = question_of(row), .measured = row.value};
    fit_row.weight = 1 / std::sqrt(static_cast<double>(pages.at({model_key(row), row.source})));
    if (fit_row.question.answer) {
      shipped.forget_used();
      fit_row.question.answer(shipped);
      fit_row.uses = shipped.used();
    }
    out.push_back(std::move(fit_row));
  }
  return out;
}

double at_quantile(const std::vector<double>& sorted, double q) {
  return sorted[static_cast<std::size_t>(q * static_cast<double>(sorted.size() - 1))];
}

template <class Choose>
std::map<std::string, ErrorSummary> summarize(const std::vector<RowResult>& rows, Choose choose) {
  std::map<std::string, std::vector<double>> errors;
  std::map<std::string, int> inside;
  for (const RowResult& result : rows) {
    const std::optional<double> value = choose(result);
    if (!value) continue;
    const double ratio = *value / result.row.value;
    const double factor = interval_factor(result.class_name);
    for (const std::string& key : {result.class_name, std::string("all")}) {
      errors[key].push_back(std::abs(ratio - 1));
      if (ratio <= factor && ratio >= 1 / factor) ++inside[key];
    }
  }
  std::map<std::string, ErrorSummary> summaries;
  for (auto& [key, values] : errors) {
    std::sort(values.begin(), values.end());
    summaries[key] = {.rows = static_cast<int>(values.size()),
                      .median = at_quantile(values, 0.5),
                      .p90 = at_quantile(values, 0.9),
                      .within_interval = static_cast<double>(inside[key]) / static_cast<double>(values.size())};
  }
  return summaries;
}

Document summary_json(const std::map<std::string, ErrorSummary>& summaries) {
  Document document = Document::map();
  for (const auto& [name, summary] : summaries) {
    document.add(name, Document::map({{"rows", Document::number(std::int64_t{summary.rows})},
                                      {"median", Document::number(summary.median)},
                                      {"p90", Document::number(summary.p90)},
                                      {"within_interval", Document::number(summary.within_interval)}}));
  }
  return document;
}

std::vector<MeasuredRow> trusted(const std::vector<MeasuredRow>& rows) {
  std::vector<MeasuredRow> kept;
  for (const MeasuredRow& row : rows) {
    // A file without the column is taken as its owner's own measurements.
    if (row.confidence == "A" || row.confidence == "B" || row.confidence.empty()) kept.push_back(row);
  }
  return kept;
}

}  // namespace

double interval_factor(const std::string& class_name) {
  static const std::map<std::string, double, std::less<>> kFactors = {
      {"decode", 1.5},    {"aggregate", 1.6}, {"collectives", 1.4}, {"prefill", 1.3},
      {"training", 1.25}, {"images", 1.4},    {"memory", 1.25},     {"power", 1.4}};
  const auto found = kFactors.find(class_name);
  return found == kFactors.end() ? 2 : found->second;
}

Validation validate(const std::vector<MeasuredRow>& all) {
  const std::vector<MeasuredRow> rows = trusted(all);
  const std::vector<FitRow> prepared = fit_rows(rows);
  const Constants shipped = shipped_constants();
  Validation validation;
  validation.left_out = static_cast<int>(all.size() - rows.size());
  std::set<std::string> models;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    RowResult result{.row = rows[i],
                     .class_name = class_of(rows[i]),
                     .predicted = {},
                     .held_out = {},
                     .why = prepared[i].question.why};
    if (prepared[i].question.answer) result.predicted = prepared[i].question.answer(shipped);
    validation.rows.push_back(std::move(result));
    models.insert(model_key(rows[i]));
  }
  for (const std::string& model : models) {
    std::vector<const FitRow*> others;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (model_key(rows[i]) != model && prepared[i].question.answer) others.push_back(&prepared[i]);
    }
    const Constants fitted = fit(others);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (model_key(rows[i]) != model || !prepared[i].question.answer) continue;
      validation.rows[i].held_out = prepared[i].question.answer(fitted);
    }
  }
  validation.in_sample = summarize(validation.rows, [](const RowResult& result) { return result.predicted; });
  validation.held_out = summarize(validation.rows, [](const RowResult& result) { return result.held_out; });
  return validation;
}

Document to_json(const Validation& validation) {
  const auto number = [](const std::optional<double>& value) {
    return value ? Document::number(*value) : Document::null();
  };
  Document rows = Document::list();
  for (const RowResult& result : validation.rows) {
    rows.items.push_back(Document::map({{"id", Document::string(result.row.id)},
                                        {"class", Document::string(result.class_name)},
                                        {"measured", Document::number(result.row.value)},
                                        {"predicted", number(result.predicted)},
                                        {"predicted_held_out", number(result.held_out)},
                                        {"unit", Document::string(result.row.unit)},
                                        {"why", Document::string(result.why)}}));
  }
  return Document::map({{"rows", std::move(rows)},
                        {"left_out", Document::number(std::int64_t{validation.left_out})},
                        {"summary", Document::map({{"leave_one_model_out", summary_json(validation.held_out)},
                                                   {"in_sample", summary_json(validation.in_sample)}})}});
}

}  // namespace yoke::plan
