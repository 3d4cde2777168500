/**
 * Passes that put ops on streams and tensors into arenas.
 *
 * <h2>Live ranges and memory</h2>
 *
 * <p>A result may take the memory of an operand that is no longer needed, also of a symmetric one.
 * Pieces of a concatenation become parts of its result, unless that takes more memory. A rank's
 * operand of an all_gather, or result of a reduce_scatter, lies in its part of the whole if that
 * lowers the peak ({@link ShardsInPlace}). Only these offsets depend on the rank. What is gathered
 * along a later dimension is rows there, with those of other ranks between them. The result of a
 * collective is rows, too, where a later op joins it with others so, unless that takes more memory
 * ({@link RowPieces}). The symmetric arena is packed for all ranks at once: the steps between two
 * collectives are put on a common axis. Each rank's local buffers then go into its holes and into
 * the local arena. No buffer can span two allocations, so the two arenas together may need more
 * than what is live at once. Then all values go into a larger symmetric arena. That costs address
 * space, but no memory.
 *
 * <h2>Why peers' memory is safe</h2>
 *
 * <p>Most variants begin and end with a barrier of the group. Peers touch a rank's memory only
 * between that rank's own start and end of the collective, so local live ranges keep remote readers
 * safe.
 *
 * <p>The step behind a collective may run in its kernel, before its end barrier ({@link
 * dev.symplan.planner.plan.Epilogue}). So operands live until it has run. For barriers that are
 * left out, it counts as a part of the collective, and as a step behind it: what it writes is not
 * sure to be seen by peers before the kernel ends. The step before a collective may run in its
 * kernel, too ({@link dev.symplan.planner.machine.VariantSpec#takesMakers}), behind the start
 * barrier. So the barriers of that collective stand in for no start of another one whose memory the
 * step touches.
 *
 * <p>{@code one_shot_push} and {@code two_shot_push} have no barrier. Their ranks access only a
 * workspace of their peers. Data that arrives there announces itself, and consecutive collectives
 * take the two halves in turn. When a rank starts a collective, it has everything that its peers
 * sent in the previous one, so they were done with the one before that. Operands and results may be
 * anywhere, also in place; and as a block has sent the rows that it then takes through an epilogue,
 * this may write over them. A workspace is a buffer of the plan, one for each group and stream, as
 * large as the collective that needs most, and live all the time. The verifier checks that nothing
 * else is in a workspace, the digest covers its offset, and the target limits its size.
 *
 * <h2>Barriers that are left out</h2>
 *
 * <p>{@link BarrierElision} leaves out a barrier that another one of the same group makes
 * redundant: between the two, no step touches what peers touch. The collective names the barrier
 * that replaces the missing one. This is the proof, so the verifier checks only the steps between
 * the two. Offsets are fixed by then, so this costs no memory. All ranks leave out the same
 * barriers, and the digest covers them. It relies on three facts:
 *
 * <ul>
 *   <li>Only one_shot, two_shot, push, multimem and copy_engine on the compute stream take part.
 *       Plain NCCL may let a rank continue before all ranks have arrived. NCCL's symmetric kernels
 *       and custom ops meet in ways that may change. Side streams are ordered with compute by
 *       events of their own rank only.
 *   <li>A backend runs a barrier on the stream of its collective, before the first access and after
 *       the last, and all compute steps on one GPU stream, or ordered by events. In PyTorch's
 *       kernels, for example, each block meets only the peers' blocks; the end of the kernel then
 *       makes this one barrier of all ranks. So the kernels of a group have equally many blocks on
 *       all ranks.
 *   <li>No collective of another group lies between. If barriers of both groups were replacements,
 *       a rank could pass one before it reaches the other.
 * </ul>
 *
 * <p>An unknown op prevents any barrier from being left out across it. An op that uses a tensor of
 * unknown location touches all memory that the tensor may be in.
 */
@NullMarked
package dev.symplan.planner.pass.place;

import org.jspecify.annotations.NullMarked;
