/** The compiler's front: what goes in, and the plan that comes out. */
@NullMarked
package dev.symplan.planner;

import org.jspecify.annotations.NullMarked;
