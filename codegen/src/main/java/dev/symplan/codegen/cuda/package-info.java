/**
 * Instructions as work for GPUs: generated CUDA C++ and calls of libraries, still without
 * addresses.
 *
 * <p>{@link CollectiveLowering} leads to the lowering of a variant. {@link PeerLowering} is for
 * variants whose ranks meet before and after they touch peers' tensors. Their two kernels ({@link
 * CollectiveKernels}: one combines, one moves) differ in sources, targets, rows, and whether flags
 * are raised before or after the data. {@link PushLowering} is for workspaces. {@link
 * MultimemLowering} has not run on hardware. {@link SignalPads} numbers the places where ranks
 * meet, {@link BarrierCode} is the code by which kernels meet, and {@link CollectiveAddresses}
 * knows the addresses of one rank.
 *
 * <p>{@link CudaExpr} prints the expressions of {@code codegen.expr}. {@link RowKernel} computes
 * reductions of rows, and the elementwise ops around them. It has a pass for each reduction that
 * needs the previous one ({@link RowPasses}), all writes in the last pass, and some threads of a
 * block for each row ({@link RowThreads}). If elements lie side by side, threads take several at
 * once ({@link Vectors}).
 *
 * <p>The package has more than thirty classes because each kind of kernel is a class, and so is its
 * lowering. All of them share the classes that write code and addresses, which are visible only
 * here.
 */
@NullMarked
package dev.symplan.codegen.cuda;

import org.jspecify.annotations.NullMarked;
