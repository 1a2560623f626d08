// Streams over two nodes of a lab while everything that can break does: ranks killed and stopped, one rail and both
// rails cut, a node without power. Minutes long: scripts/soak-serve runs it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <numeric>

#include "tests/served.h"

namespace yoke::tests {
namespace {

using namespace literals;

struct SoakFault {
  const char* name;
  std::function<void(const TestLab&)> happen;
};

void in_node(const TestLab& lab, const char* node, const char* script) {
  const Outcome outcome = lab.exec(node, {"sh", "-c", script}, {30});
  EXPECT_TRUE(outcome.ok()) << node << ": " << script << ": " << outcome.err;
}

void make_fault(const TestLab& lab, std::vector<std::string> words) {
  words.insert(words.begin(), {"lab", "fault"});
  words.insert(words.end(), {"--name", lab.name});
  const Outcome made = lab.yoke(words);
  EXPECT_TRUE(made.ok()) << fmt::format("{}: {}", words.at(2), made.err);
}

const std::vector<SoakFault>& soak_faults() {
  // The words must not stand in the shell's own command line as pkill looks for them.
  static const std::vector<SoakFault> faults = {
      {"SIGKILL of rank 0", [](const TestLab& lab) { in_node(lab, "1", "pkill -KILL -f 'rank [e]ngine'"); }},
      {"SIGKILL of rank 1", [](const TestLab& lab) { in_node(lab, "2", "pkill -KILL -f 'rank [e]ngine'"); }},
      {"SIGSTOP of rank 0", [](const TestLab& lab) { in_node(lab, "1", "pkill -STOP -f 'rank [e]ngine'"); }},
      {"SIGSTOP of rank 1", [](const TestLab& lab) { in_node(lab, "2", "pkill -STOP -f 'rank [e]ngine'"); }},
      {"rail A down for 3 s",
       [](const TestLab& lab) {
         make_fault(lab, {"rail-down", "--node", "2", "--rail", "A"});
         real_clock().sleep(3_s);
         make_fault(lab, {"clear"});
       }},
      {"both rails down for 10 s",
       [](const TestLab& lab) {
         make_fault(lab, {"cable-pulled", "--node", "2"});
         real_clock().sleep(10_s);
         make_fault(lab, {"clear"});
       }},
      {"node 2 without power for 5 s",
       [](const TestLab& lab) {
         make_fault(lab, {"power-off", "--node", "2"});
         real_clock().sleep(5_s);
         make_fault(lab, {"power-on", "--node", "2"});
       }},
  };
  return faults;
}

// The server in the lab's head, and eight streams from there by 'yoke bench serve'.
struct SoakServer {
  SoakServer() {
    process.emplace(
        Command{.argv = {YOKE_PROGRAM, "serve", kNano, "--port", "8000", "--threads", "1", "--backend", "ref"},
                .folder = lab.folder});
    for (const Deadline deadline = Deadline::after(60_s); !deadline.expired();) {
      log += process->read_bytes(OutputStream::kErr, 4096, Deadline::after(0.1_s));
      if (log.find("2 ranks on") != std::string::npos) return;
    }
    throw Error(ErrorCode::kTimeout, "not ready: " + log);
  }
  // The row of 'yoke bench serve --json', with something happening meanwhile.
  Document stream(const std::string& tokens, const std::function<void()>& meanwhile) {
    Process clients({.argv = {YOKE_PROGRAM, "bench", "serve", "--streams", "8", "-n", tokens, "--temperature", "0.8",
                              "--no-history", "--output", "-"},
                     .folder = lab.folder});
    std::string out;
    while (!clients.at_end(OutputStream::kOut) && out.find("have begun") == std::string::npos) {
      out += clients.read_bytes(OutputStream::kOut, 4096, Deadline::after(0.1_s));
    }
    meanwhile();
    for (const Deadline deadline = Deadline::after(300_s);
         !clients.at_end(OutputStream::kOut) && !deadline.expired();) {
      out += clients.read_bytes(OutputStream::kOut, 1 << 20, Deadline::after(0.2_s));
    }
    log += process->read_bytes(OutputStream::kErr, 1 << 20, Deadline::after(0.2_s));
    const std::size_t json = out.find("\n{");
    if (json == std::string::npos) throw Error(ErrorCode::kTimeout, "the streams do not end: " + out + log);
    const Document all = parse_json(out.substr(json), "streams");
    return at(all, "rows").items.at(0);
  }

  const TestLab lab{{"--nodes", "2"}};
  std::optional<Process> process;
  std::string log;
};

std::vector<std::string> answer_texts(const Document& row) {
  std::vector<std::string> texts;
  for (const Document& answer : at(row, "answers").items) {
    const Document* const error = answer.find("error");
    texts.push_back(error ? "error: " + error->text : at(answer, "text").text);
  }
  return texts;
}

// Its model is gone when a rank must be started again; later the model is back.
TEST(ServeSoak, AnEngineThatCannotStartEndsInAClearStateAndComesBack) {
  if (!std::getenv("YOKE_SERVE_SOAK")) GTEST_SKIP() << "takes minutes: scripts/soak-serve runs it";
  const ScratchDir folder("yoke-serve-storm");
  const auto model = folder.path() / "nano", away = folder.path() / "away";
  std::filesystem::copy(kNano, model, std::filesystem::copy_options::recursive);
  Served served(ServedHow{.model = {model.native(), "--threads", "1"}});
  served.wait_until_ready();
  std::filesystem::rename(model, away);
  const std::string own_mark = "YOKE_TEST_MARK=" + served.mark;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const auto environment = try_to([&] { return read_file(entry.path() / "environ"); });
    const auto line = try_to([&] { return read_file(entry.path() / "cmdline"); });
    if (!environment || !line || environment->find(own_mark) == std::string::npos) continue;
    if (line->find(std::string("rank\0engine", 11)) == std::string::npos) continue;
    ::kill(std::atoi(entry.path().filename().c_str()), SIGKILL);
  }
  // What comes now waits, and ends with the reason once nobody expects the engine back soon.
  const http::HttpAnswer waited = served.post("/v1/completions", R"({"prompt":"A","max_tokens":1})");
  EXPECT_EQ(waited.status, 503) << waited.body;
  EXPECT_EQ(waited.header("retry-after"), "5");
  EXPECT_THAT(waited.body, testing::HasSubstr("there is no model folder"));
  EXPECT_THAT(served.get("/health").body, testing::HasSubstr("failed"));
  std::filesystem::rename(away, model);
  served.wait_until_ready();
  EXPECT_EQ(served.post("/v1/completions", R"({"prompt":"A","max_tokens":1})").status, 200);
}

TEST(LabServeSoak, StreamsOutliveEveryFault) {
  const char* const rounds = std::getenv("YOKE_SERVE_SOAK");
  if (!rounds) GTEST_SKIP() << "takes minutes: scripts/soak-serve runs it";
  if (const auto why = why_no_labs()) GTEST_SKIP() << *why;
  SoakServer server;
  const std::string tokens = "400";
  const auto expected = answer_texts(server.stream(tokens, [] {}));
  fmt::print("{:>5}  {:30} {:>8} {:>10} {:>12}\n", "round", "fault", "lost", "same", "pause (s)");
  for (int round = 0; round < std::atoi(rounds); ++round) {
    const SoakFault& fault = soak_faults()[static_cast<std::size_t>(round) % soak_faults().size()];
    const std::size_t known = server.log.size();
    const Document row = server.stream(tokens, [&] { fault.happen(server.lab); });
    const auto texts = answer_texts(row);
    EXPECT_EQ(texts, expected) << fault.name << "\n" << server.log;
    EXPECT_GT(server.log.size(), known) << fault.name << " was not noticed";
    const double pause = std::stod(at(at(row, "longest_pause_ms"), "max").text) / 1e3;
    const auto same = std::inner_product(texts.begin(), texts.end(), expected.begin(), 0, std::plus<>(),
                                         [](const auto& a, const auto& b) { return a == b ? 1 : 0; });
    fmt::print("{:>5}  {:30} {:>8} {:>7} of 8 {:>9.2f}\n", round + 1, fault.name, at(row, "failed").text, same, pause);
    std::fflush(stdout);
    if (HasFailure()) break;
  }
  EXPECT_FALSE(server.process->at_end()) << server.log;
}

}  // namespace
}  // namespace yoke::tests
