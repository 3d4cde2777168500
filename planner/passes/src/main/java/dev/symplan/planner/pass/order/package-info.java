/**
 * Orders of ops that need less memory, and tensors that give up theirs for the same reason ({@link
 * PeakReduction}).
 *
 * <p>{@link WorkUnits} moves the ops of one step together. {@link ExactOrder} finds the best order
 * of small graphs. For others, {@link PeakDescent} moves ops across the peak while it goes down,
 * from the given order and from two of {@link ListOrder}. {@code OrderSearch} then drafts a plan
 * for the best few, and chooses by what the drafts really need: at least 1 % less memory, and no
 * more predicted time than the budget. If all take too long, it tries orders in which no op crosses
 * a collective, what the collective waits for, or what waits for it. The given order stays unless
 * another is better. Each rank's graph is ordered by itself, and collectives keep their order.
 */
@NullMarked
package dev.symplan.planner.pass.order;

import org.jspecify.annotations.NullMarked;
