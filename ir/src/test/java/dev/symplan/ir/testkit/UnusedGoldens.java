package dev.symplan.ir.testkit;

import org.junit.jupiter.api.Test;

/**
 * Fails where a module has golden files that none of its tests reads. Each module with such files
 * has a subclass, which the order of test classes puts last: {@code @Order(Integer.MAX_VALUE)}.
 */
public abstract class UnusedGoldens {

  @Test
  final void areNone() {
    Golden.checkNoneUnused();
  }
}
