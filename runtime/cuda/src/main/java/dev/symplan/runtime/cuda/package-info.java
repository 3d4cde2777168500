/**
 * Plans on the GPUs of one host, a thread for each.
 *
 * <p>A session has some of the ranks ({@link LocalRank}) and reaches the memory of all through
 * {@link Peers}: pointers of the same process, or {@link MappedPeers}, whose handles {@link
 * HandleExchange} passes between processes. {@link MulticastMember} has addresses of several ranks
 * at once; it calls {@link MemoryDriver}, so that tests without a GPU see what is called. {@link
 * Communicators} has one communicator for each place where ranks meet, and keeps NCCL's windows in
 * communicators of their own.
 *
 * <p>{@link SessionFailure} is the first failure of any thread or process. Every wait of the host
 * looks at it; kernels hear of it through their flags, and NCCL by an abort. Kernels leave in
 * {@link FailureWords} which collective and which peer they waited for. What a failed session holds
 * is freed only when all its GPUs have stopped, and {@link ProcessExit} ends a process whose GPU
 * never does.
 *
 * <p>The package has about forty classes: each holds one resource of a session and frees it, and
 * only the session sees them.
 */
@NullMarked
package dev.symplan.runtime.cuda;

import org.jspecify.annotations.NullMarked;
