/**
 * Executes graphs and plans on tokens instead of numbers, and shares no code with the passes or the
 * verifier. What only schemas describe does something that its schema leaves open, drawn from a
 * seed, and the same in graph and plan.
 *
 * <p>A byte is known by the token of the op that computed it and its position in what the op gave;
 * copies and collectives move these names. So tensors of any size can be compared, byte by byte.
 */
@NullMarked
package dev.symplan.planner.interpret;

import org.jspecify.annotations.NullMarked;
