/**
 * Instructions as work for GPUs: generated CUDA C++ and calls of libraries, still without
 * addresses.
 *
 * <p>{@link CollectiveLowering} leads to the lowering of a variant. {@link PeerLowering} is for
 * those that meet before and after they touch peers' tensors. Their two kernels ({@link
 * CollectiveKernels}: one combines, one moves) differ in sources, targets, rows, and whether flags
 * are raised before the data or behind it. {@link PushLowering} is for workspaces. {@link
 * MultimemLowering} has not run on hardware. {@link SignalPads} numbers where ranks meet, {@link
 * BarrierCode} is how kernels do, and {@link CollectiveAddresses} knows the addresses of one rank.
 *
 * <p>{@link CudaExpr} prints what {@code codegen.expr} says that ops compute. {@link RowKernel}
 * takes rows through reductions and what surrounds them: a pass for each reduction that needs the
 * one before ({@link RowPasses}), all writes in the last pass, and some threads of a block for each
 * row ({@link RowThreads}). Where elements lie side by side, threads take several at once ({@link
 * Vectors}).
 *
 * <p>The package has more than thirty classes because each kind of kernel is a class, and so is its
 * lowering. All of them share the classes that write code and addresses, which nothing else sees.
 */
@NullMarked
package dev.symplan.codegen.cuda;

import org.jspecify.annotations.NullMarked;
