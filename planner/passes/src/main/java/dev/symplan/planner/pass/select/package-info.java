/** Passes that choose a variant for each collective and insert the copies that it needs. */
@NullMarked
package dev.symplan.planner.pass.select;

import org.jspecify.annotations.NullMarked;
