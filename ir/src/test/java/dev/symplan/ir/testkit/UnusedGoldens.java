package dev.symplan.ir.testkit;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;

/**
 * Fails if a module has golden files that none of its tests reads. Each module with such files has
 * a subclass, which runs last: its order is {@code @Order(Integer.MAX_VALUE)}, and isolated classes
 * follow those that run in parallel.
 */
@Isolated
public abstract class UnusedGoldens {

  @Test
  final void areNone() {
    Golden.checkNoneUnused();
  }
}
