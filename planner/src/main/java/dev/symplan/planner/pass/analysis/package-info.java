/** What is known of a graph before and between the passes: aliases, windows, constraints. */
@NullMarked
package dev.symplan.planner.pass.analysis;

import org.jspecify.annotations.NullMarked;
