// The table of all words that follow `yoke`. Adding a command: a file with its function, its name here, its line in
// commands.cc.
#pragma once
#include <vector>

#include "yoke/cli/command.h"

namespace yoke::cli {

std::vector<CommandRow> command_table();    // public and hidden words
std::vector<CommandRow> public_commands();  // what help, the man page and completion show

CommandRow bench_command();
std::vector<CommandRow> bench_history_commands();  // of bench_command
std::vector<CommandRow> bench_machine_commands();  // of bench_command
CommandRow bench_calibrate_command();              // of bench_command
CommandRow bench_recovery_command();               // of bench_command
CommandRow bench_engine_command();                 // of bench_command
CommandRow bench_model_command();                  // of bench_command
CommandRow bench_scaling_command();                // of bench_command
CommandRow bench_serve_command();                  // of bench_command
CommandRow chat_command();
CommandRow check_command();
CommandRow check_nccl_log_command();  // of check_command
CommandRow cluster_command();
CommandRow cluster_reach_command();  // of cluster_command
CommandRow completion_command();
CommandRow explain_command();
CommandRow gameday_command();
CommandRow help_command();
CommandRow job_command();
CommandRow job_list_command();  // of job_command
CommandRow job_stop_command();  // of job_command
CommandRow lab_command();
CommandRow lab_fault_command();   // of lab_command
CommandRow lab_status_command();  // of lab_command
CommandRow launch_command();
CommandRow launch_convert_command();  // of launch_command
CommandRow launch_env_command();      // of launch_command
CommandRow launch_guard_command();    // of launch_command
CommandRow launch_list_command();     // of launch_command
CommandRow launch_review_command();   // of launch_command
CommandRow launch_show_command();     // of launch_command
CommandRow link_command();
CommandRow link_discover_command();  // of link_command
CommandRow link_setup_command();     // of link_command
CommandRow link_test_command();      // of link_command
CommandRow link_undo_command();      // of link_command
CommandRow man_command();
CommandRow model_command();
CommandRow model_import_command();  // of model_command
CommandRow model_shapes_command();  // of model_command
CommandRow model_show_command();
CommandRow model_sync_command();  // of model_command
CommandRow tokenize_command();
CommandRow walk_up_command();
CommandRow plan_command();
CommandRow plan_explain_command();   // of plan_command
CommandRow plan_hardware_command();  // of plan_command
CommandRow plan_models_command();    // of plan_command
CommandRow plan_validate_command();  // of plan_command
CommandRow batch_command();
CommandRow prep_command();
CommandRow prep_image_command();  // of prep_command
CommandRow prep_nccl_command();
CommandRow prep_python_command();
CommandRow probe_command();
CommandRow run_command();
CommandRow serve_command();
CommandRow support_command();
CommandRow verify_command();
CommandRow version_command();
CommandRow watch_command();
CommandRow why_command();

// From the command line to an exit status: finds the command in the table, parses its options, runs it, and reports
// whatever it throws, once. Arguments are without the program's name.
int run_command_line(const std::vector<std::string>& arguments);

// What `yoke` alone prints: where you stand and the next step.
int show_status(Session& session);

}  // namespace yoke::cli
