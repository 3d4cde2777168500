/** The list of passes, and the searches among them that try several graphs. */
@NullMarked
package dev.symplan.planner.pipeline;

import org.jspecify.annotations.NullMarked;
