package dev.symplan.ir.testkit;

import org.junit.jupiter.api.Order;

@Order(Integer.MAX_VALUE)
class UnusedGoldensTest extends UnusedGoldens {}
