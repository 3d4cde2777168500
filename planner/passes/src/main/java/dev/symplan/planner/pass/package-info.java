/**
 * What a pass is, and the state that passes hand on.
 *
 * <p>To add a pass: write a class that extends {@link GraphPass}, and put it into the list in
 * {@code dev.symplan.planner.pipeline.Pipeline}. What it finds out is a {@link Fact} of its own,
 * which later passes name among their needs.
 */
@NullMarked
package dev.symplan.planner.pass;

import org.jspecify.annotations.NullMarked;
