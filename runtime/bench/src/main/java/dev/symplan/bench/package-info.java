/** Benchmarks: {@code docs/performance.md} has the commands and the figures. */
@NullMarked
package dev.symplan.bench;

import org.jspecify.annotations.NullMarked;
