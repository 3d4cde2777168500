package dev.symplan.codegen.model;

import dev.symplan.ir.testkit.UnusedGoldens;
import org.junit.jupiter.api.Order;

@Order(Integer.MAX_VALUE)
class UnusedGoldensTest extends UnusedGoldens {}
