/** Passes that choose the variant of each collective, and put in the copies that it needs. */
@NullMarked
package dev.symplan.planner.pass.select;

import org.jspecify.annotations.NullMarked;
