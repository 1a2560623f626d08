// The table of all commands. Adding one: a file with its function, its name here, its line in commands.cc.
#pragma once
#include <vector>

#include "yoke/cli/command.h"

namespace yoke {

std::vector<CommandRow> command_table();

CommandRow bench_command();
std::vector<CommandRow> bench_history_commands();  // of bench_command
std::vector<CommandRow> bench_machine_commands();  // of bench_command
CommandRow bench_recovery_command();               // of bench_command
CommandRow bench_scaling_command();                // of bench_command
CommandRow chat_command();
CommandRow check_command();
CommandRow check_nccl_log_command();  // of check_command
CommandRow cluster_command();
CommandRow cluster_reach_command();  // of cluster_command
CommandRow completion_command();
CommandRow gameday_command();
CommandRow help_command();
CommandRow job_command();
CommandRow job_list_command();  // of job_command
CommandRow job_stop_command();  // of job_command
CommandRow lab_command();
CommandRow lab_fault_command();  // of lab_command
CommandRow link_command();
CommandRow link_discover_command();  // of link_command
CommandRow link_setup_command();     // of link_command
CommandRow link_test_command();      // of link_command
CommandRow link_undo_command();      // of link_command
CommandRow man_command();
CommandRow model_command();
CommandRow model_shapes_command();  // of model_command
CommandRow model_show_command();    // of model_command
CommandRow tokenize_command();
CommandRow plan_command();
CommandRow plan_explain_command();   // of plan_command
CommandRow plan_hardware_command();  // of plan_command
CommandRow plan_models_command();    // of plan_command
CommandRow plan_validate_command();  // of plan_command
CommandRow probe_command();
CommandRow run_command();
CommandRow verify_command();
CommandRow version_command();

// What `yoke` alone says: where you stand and the next step.
int say_where_you_stand(Session& session);

}  // namespace yoke
