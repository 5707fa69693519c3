// RUN: flash-opt %s --split-input-file --verify-diagnostics --convert-host-to-emitc

// expected-error @below {{'func.func' op is no host program: it must have a body and one argument, a !host.call}}
func.func @no_call() {
  return
}

// -----

// expected-error @below {{'func.func' op is no host program}}
func.func @other(%n: i64) {
  return
}

// -----

// expected-error @below {{'func.func' op is no host program}}
func.func private @no_body(!host.call) -> i32
