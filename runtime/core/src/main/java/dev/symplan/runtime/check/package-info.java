/**
 * Compares outputs with an evaluation without a plan, and searches for the cause of differences.
 */
@NullMarked
package dev.symplan.runtime.check;

import org.jspecify.annotations.NullMarked;
