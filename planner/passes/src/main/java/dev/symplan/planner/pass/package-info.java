/**
 * The interface of passes, and the state that they hand on.
 *
 * <p>To add a pass: write a class that extends {@link GraphPass}, and put it into the list in
 * {@code dev.symplan.planner.pipeline.Pipeline}. Its findings are a {@link Fact}, which later
 * passes name among their needs.
 */
@NullMarked
package dev.symplan.planner.pass;

import org.jspecify.annotations.NullMarked;
