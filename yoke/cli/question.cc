#include "yoke/cli/question.h"

#include <fmt/format.h>
#include <unistd.h>

#include "yoke/base/error.h"
#include "yoke/base/text.h"
#include "yoke/fleet/fleet.h"
#include "yoke/remote/first_contact.h"
#include "yoke/remote/ssh_errors.h"
#include "yoke/terminal/typed_input.h"

namespace yoke::cli {

bool ask(const Session& session, const Question& question) {
  if (question.agreed) return true;
  if (session.json || !isatty(STDIN_FILENO)) throw Error(ErrorCode::kUsage, question.unasked, question.hint);
  while (true) {
    session.print(question.text + " [y/N]");
    session.print(" ");  // by itself, as breaking the text into lines drops it
    const std::optional<std::string> answer = terminal::read_typed_line();
    if (!answer) throw Error(ErrorCode::kUsage, "the input ended before the question was answered", question.hint);
    const std::string_view word = trim(*answer);
    if (word != "d" || !question.show_details) return word == "y" || word == "yes";
    question.show_details();
  }
}

namespace {

std::string introduction(const remote::Host& host, const remote::FirstContact& contact) {
  if (contact.is_known) return fmt::format("{} does not know your ssh key.\n", remote::describe(host));
  std::string text = fmt::format("{} is new here. Its host keys are:\n", remote::describe(host));
  for (const remote::HostKey& key : contact.keys) text += fmt::format("  {} {}\n", key.fingerprint, key.type);
  return text + "Compare one with what the machine itself prints: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub\n";
}

std::string question_about(const remote::Host& host, const remote::FirstContact& contact) {
  const std::string who = host.user.empty() ? "your user" : host.user;
  return fmt::format("{} install your ssh key there? ssh asks for the password of {} once.",
                     contact.is_known ? "May yoke" : "Trust this host, and", who);
}

}  // namespace

bool offer_first_contact(const Session& session, const spec::Cluster& cluster) {
  if (session.json || !isatty(STDIN_FILENO)) return false;
  fleet::Fleet fleet(cluster.nodes, {});
  const auto looks = fleet.each("reaching the nodes", [](fleet::Node& node) {
    node.look();
    return true;
  });
  bool made = false;
  for (std::size_t i = 0; i < looks.size(); ++i) {
    const bool refused = !looks[i] && looks[i].error().code() == ErrorCode::kPermission && !fleet[i].logged_in();
    if (!refused) continue;
    const remote::Host host = remote::host_of(cluster.nodes[i]);
    const remote::FirstContact contact = remote::inspect_host(host);
    session.print(introduction(host, contact));
    if (!ask(session, {.text = question_about(host, contact), .agreed = false, .unasked = "", .hint = ""}))
      return false;
    remote::make_first_contact(host, contact);
    session.print(fmt::format("Your ssh key is installed on {}.\n", remote::describe(host)));
    made = true;
  }
  return made;
}

}  // namespace yoke::cli
