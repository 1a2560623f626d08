// yoke's hand on a node: a hidden part of the program, started there over ssh, that does what the head asks, one JSON
// text a line in and one out. It ends with its input. It is not a job of ranks: a job's members must find each other
// over the very halves that are to be measured or made here, while this needs only the way that ssh takes.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/document.h"

namespace yoke {

// By name: what a request's body asks, and what is answered. What it throws goes to the head as an error.
using AgentAction = std::function<Document(const Document& body)>;
using AgentActions = std::map<std::string, AgentAction>;

// One request line to its answer line; whatever it is, there is an answer.
std::string answer_request(const AgentActions& actions, const std::string& line);

// The words by which requests and answers are told, on both sides.
std::string request_line(const std::string& action, const Document& body);
Document read_answer_line(const std::string& line);  // the answer's body; throws the Error that it carries

// `yoke link-agent`: the exit status, or nothing for other arguments.
std::optional<int> run_link_part(const std::vector<std::string>& arguments);

}  // namespace yoke
