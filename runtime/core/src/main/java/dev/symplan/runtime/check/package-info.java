/**
 * Outputs compared with an evaluation without a plan, and the search for what makes them differ.
 */
@NullMarked
package dev.symplan.runtime.check;

import org.jspecify.annotations.NullMarked;
