/**
 * The abilities of machines: variants of collectives, the needs of each, and the costs that targets
 * state.
 *
 * <p>A variant of a kind of collective is a row of {@link VariantTable}, which everything reads:
 * {@link Eligibility}, predicted times, placement, barriers, the verifier, reports, and the
 * transfers that {@code codegen} derives from the row's {@link Protocol}. To add a variant:
 *
 * <ol>
 *   <li>Add the constant to {@link Variant}, and a row for each kind to {@link VariantTable}. A
 *       need that no other variant has is a new {@link Requirement}.
 *   <li>Add its curves to the target files. Without one, the link's rates predict its time.
 *   <li>If its protocol is new, too, {@code codegen.Transfers} must derive its transfers. The host
 *       backend can then run it, and the models and the tests of variants check it.
 *   <li>Add it to {@code codegen.cuda.CollectiveLowering}. Only a new kind of movement needs a new
 *       kernel. A backend that does not support the variant says so in its {@link BackendVariants}.
 * </ol>
 */
@NullMarked
package dev.symplan.planner.machine;

import org.jspecify.annotations.NullMarked;
