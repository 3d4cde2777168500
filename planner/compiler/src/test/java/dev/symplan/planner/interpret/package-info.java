/**
 * Executes graphs and plans on tokens instead of numbers, and shares no code with the passes or the
 * verifier. An op that only a schema describes does something that its schema allows. It is drawn
 * from a seed, and is the same in graph and plan.
 *
 * <p>A byte is identified by the token of the op that computed it, and by its position in the op's
 * result. Copies and collectives move these names. So tensors of any size can be compared, byte by
 * byte.
 */
@NullMarked
package dev.symplan.planner.interpret;

import org.jspecify.annotations.NullMarked;
