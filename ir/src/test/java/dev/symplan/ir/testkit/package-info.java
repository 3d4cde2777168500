/** Helpers for the tests of all modules. */
@NullMarked
package dev.symplan.ir.testkit;

import org.jspecify.annotations.NullMarked;
