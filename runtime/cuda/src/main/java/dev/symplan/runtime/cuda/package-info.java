/**
 * Plans on the GPUs of one host, a thread for each.
 *
 * <p>A session has some of the ranks ({@link LocalRank}) and reaches the memory of all through
 * {@link Peers}: pointers of the same process, or {@link MappedPeers}, whose handles {@link
 * HandleExchange} passes between processes. {@link MulticastMember} has addresses that stand for
 * several ranks at once. It calls {@link MemoryDriver}, so that tests without a GPU can check the
 * calls. {@link Communicators} has one communicator for each place where ranks meet, and separate
 * communicators for NCCL's windows.
 *
 * <p>{@link SessionFailure} is the first failure of any thread or process. Every wait of the host
 * checks it. Kernels learn of it through their flags, and NCCL through an abort. Kernels write to
 * {@link FailureWords} which collective and which peer they waited for. The resources of a failed
 * session are freed only when all its GPUs have stopped, and {@link ProcessExit} ends a process
 * whose GPU never does.
 *
 * <p>The package has more than fifty classes: each holds one resource of a session and frees it,
 * and only the session sees them.
 */
@NullMarked
package dev.symplan.runtime.cuda;

import org.jspecify.annotations.NullMarked;
