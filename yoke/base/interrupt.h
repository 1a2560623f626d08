// Ctrl-C, SIGTERM and SIGHUP as a question that long waits ask. The first signal sets a flag, and the wait ends with
// Error(kInterrupted), so that every scope cleans up behind itself; the third ends the program at once.
#pragma once

namespace yoke {

void install_interrupt_handlers();  // once, at the start of main
int interrupt_signal();             // the signal that came, 0 when none
int interrupts_received();          // how many came
void throw_if_interrupted();

}  // namespace yoke
