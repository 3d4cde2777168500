package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableMap;

/** Ops that only check, and those that do nothing. */
final class GuardKernels {
  private GuardKernels() {}

  static ImmutableMap<String, HostKernel> table() {
    return ImmutableMap.of(
        "aten::_assert_async",
        call -> check(call.tensor("self").get() != 0, "an element is 0, but must not be"),
        "aten::_assert_async.msg",
        call -> check(call.tensor("self").get() != 0, call.string("assert_msg")),
        "aten::_assert_scalar",
        call -> check(call.number("self") != 0, call.string("assert_msg")),
        // Its checks are made before anything runs.
        "aten::_assert_tensor_metadata",
        _ -> {},
        "symplan::border",
        _ -> {},
        "symplan::setup_end",
        _ -> {},
        // Without streams, nothing is under way.
        "symplan::await_copy",
        _ -> {});
  }

  private static void check(boolean holds, String message) {
    if (!holds) {
      throw new HostKernelException(message);
    }
  }
}
