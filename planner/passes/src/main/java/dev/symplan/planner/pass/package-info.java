/** The passes that make a plan, in the order of {@link Pipeline}. */
@NullMarked
package dev.symplan.planner.pass;

import org.jspecify.annotations.NullMarked;
