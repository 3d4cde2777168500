/** Orders of ops that need less memory. */
@NullMarked
package dev.symplan.planner.pass.order;

import org.jspecify.annotations.NullMarked;
