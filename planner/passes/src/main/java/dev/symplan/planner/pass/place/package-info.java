/**
 * Passes that put ops on streams and tensors into arenas.
 *
 * <h2>Live ranges and memory</h2>
 *
 * <p>A result may take the memory of an operand that ends, also a symmetric one. Pieces of a
 * concatenation become parts of its result, unless that takes more memory. What a rank brings to an
 * all_gather, or gets from a reduce_scatter, lies in its part of the whole where that lowers the
 * peak ({@link ShardsInPlace}); only these offsets depend on the rank. The symmetric arena is
 * packed for all ranks at once: the steps between two collectives are put on a common axis. Each
 * rank's local buffers then go into its holes and into the local arena. As no buffer can lie across
 * two allocations, the two arenas together may have to be larger than what is live at once. Then
 * all values go into a larger symmetric arena. That costs address space, but no memory.
 *
 * <h2>Why peers' memory is safe</h2>
 *
 * <p>Most variants begin and end with a barrier of the group. Peers touch a rank's memory only
 * between that rank's own start and end of the collective, so local live ranges keep remote readers
 * safe.
 *
 * <p>{@code one_shot_push} and {@code two_shot_push} have no barrier. Their ranks touch nothing of
 * each other's but a workspace. Data that arrives there announces itself, and consecutive
 * collectives take the two halves in turn. A rank at one collective has what all its peers sent in
 * the one before, so they were done with the one before that. Operands and results lie anywhere,
 * also in place. A workspace is a buffer of the plan, one for each group and stream, as large as
 * the collective that needs most, and live all the time. The verifier checks that nothing else lies
 * there, the digest covers its offset, and the target limits its size.
 *
 * <h2>Barriers that are left out</h2>
 *
 * <p>{@link BarrierElision} leaves out a barrier that another one of the same group makes
 * redundant: between the two, no step touches what peers touch. The collective names the barrier
 * that stands in, which is the proof, so the verifier looks only at the steps between. Places are
 * fixed by then, so this costs no memory. All ranks leave out the same barriers, and the digest
 * covers them. It relies on three facts:
 *
 * <ul>
 *   <li>Only one_shot, two_shot, push, multimem and copy_engine on the compute stream take part.
 *       Plain NCCL may let a rank go before all have come. NCCL's symmetric kernels and custom ops
 *       meet in ways that may change. Side streams are ordered with compute by events of their own
 *       rank only.
 *   <li>A backend runs a barrier on the stream of its collective, before the first access and after
 *       the last, and all compute steps on one GPU stream, or ordered by events. Where each block
 *       of a kernel meets only its peers' blocks, as in PyTorch's kernels, the end of the kernel
 *       makes it one barrier of all. So the kernels of a group have equally many blocks on all
 *       ranks.
 *   <li>No collective of another group lies between. With a barrier of each group standing in, a
 *       rank could pass one before it reaches the other.
 * </ul>
 *
 * <p>An op of which nothing is known stands in the way of every barrier. One that uses a tensor of
 * which it is not known where it is touches all memory that the tensor may be in.
 */
@NullMarked
package dev.symplan.planner.pass.place;

import org.jspecify.annotations.NullMarked;
