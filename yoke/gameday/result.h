// What a game day found, as plain data: for the terminal, for --json and for the page (summary.h).
#pragma once
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/base/units.h"
#include "yoke/report/html.h"

namespace yoke::gameday {

enum class Verdict { kPass, kFail, kSkipped };
constexpr auto enum_names(Verdict) {
  return std::array{std::pair{"pass", Verdict::kPass}, std::pair{"fail", Verdict::kFail},
                    std::pair{"skipped", Verdict::kSkipped}};
}
std::string to_string(Verdict verdict);

struct PlayedCommand {
  std::string line;  // as one would type it
  Seconds seconds;
  int exit_status = 0;
};

struct Figure {
  std::string name;
  double value = 0;
  std::string unit;
  std::string note = {};  // what it is to be compared with: "97% of 0.25 GB/s"
};
std::string to_string(const Figure& figure);

struct PhaseResult {
  std::string name;
  std::string title;
  Verdict verdict = Verdict::kPass;
  std::string why = {};  // it failed or was skipped
  Seconds seconds{};
  std::vector<Figure> figures = {};
  std::vector<std::string> held = {};  // what was expected and came true
  std::vector<PlayedCommand> commands = {};
  std::vector<report::HtmlBlock> blocks = {};  // tables, charts and texts for the page
};

struct GamedayResult {
  std::string place;  // "lab 'gameday-d0bc' of two virtual Sparks", or the cluster's name
  std::string started;
  Seconds seconds{};
  std::vector<PhaseResult> phases = {};
  std::vector<report::HtmlBlock> strip = {};  // plots of the whole day, from a recorded watch

  bool passed() const;  // no phase failed
};

Document to_json(const GamedayResult& result);

}  // namespace yoke::gameday
