package dev.symplan.planner.interpret;

/** Something that shows a plan to be wrong. */
final class Unsafe extends RuntimeException {
  Unsafe(String message) {
    super(message, null, false, false);
  }

  static void require(boolean fact, String message, Object... args) {
    if (!fact) {
      throw new Unsafe(message.formatted(args));
    }
  }
}
