/** {@code symplan bench} and {@code calibrate}: times, and targets fitted to them. */
@NullMarked
package dev.symplan.cli.bench;

import org.jspecify.annotations.NullMarked;
