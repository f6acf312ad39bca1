// SPDX-License-Identifier: Apache-2.0
// Main program of a bench that counts coverage (hw/tb/run.sh with COVERAGE set): what Verilator generates for
// --binary, and writes the counts to +coverage=FILE. 5.006's own does not.
#include <cstring>
#include <memory>
#include <string>

#include "Vtb.h"
#include "verilated.h"
#include "verilated_cov.h"

int main(int argc, char** argv) {
  const auto context = std::make_unique<VerilatedContext>();
  context->commandArgs(argc, argv);
  const auto tb = std::make_unique<Vtb>(context.get());
  while (!context->gotFinish()) {
    tb->eval();
    if (!tb->eventsPending()) break;
    context->time(tb->nextTimeSlot());
  }
  tb->final();
  const std::string match = context->commandArgsPlusMatch("coverage=");
  if (const char* file = std::strchr(match.c_str(), '=')) context->coveragep()->write(file + 1);
  return 0;
}
