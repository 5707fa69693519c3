// RUN: flash-opt %s --split-input-file --verify-diagnostics

func.func @overflow(%a: i64) {
  // expected-error@+1 {{'host.overflow' op is of add, sub or mul, not of divs}}
  %r, %fits = host.overflow divs %a, %a
  return
}

// -----

func.func @message(%ok: i1, %a: i64) {
  // expected-error@+1 {{'host.check' op has a value 1 that its message leaves out}}
  host.check %ok, "wrong" : "{0} is wrong" (%a, %a)
  return
}

// -----

func.func @values(%ok: i1, %a: i64) {
  // expected-error@+1 {{'host.check' op has 3 values, but its message may have at most 2}}
  host.check %ok, "wrong" : "{0}, {1} and {2} are wrong" (%a, %a, %a)
  return
}

// -----

func.func @launch(%call: !host.call, %a: i64) {
  // expected-error@+1 {{'host.launch' op needs three sizes of the grid, three of the block and the bytes of shared memory}}
  host.launch %call, 0 "k" (%a, %a, %a, %a, %a, %a)
  return
}

// -----

func.func @attribute(%a: i64) {
  // expected-error@+1 {{'host.checked' op has no attribute 'fast'; the nearest is 'kind'}}
  %r = host.checked add %a, %a {fast}
  return
}

// -----

// expected-error@+1 {{host.whole}}
func.func @argument(%call: !host.call {host.whole}) {
  return
}

// -----

func.func @dependent(%call: !host.call, %a: i64) {
  // expected-error@+1 {{'host.launch' op depends on no launch, as it is the first of its function; leave out 'dependent'}}
  host.launch %call, 0 "k" (%a, %a, %a, %a, %a, %a, %a) dependent
  return
}
