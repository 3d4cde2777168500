/**
 * NVIDIA's libraries and driver on this machine.
 *
 * <p>{@link Libraries} finds driver, CUDA and NCCL, and loads them by file before the bindings ask
 * for them by {@code SONAME}. This happens only when the backend is first used. {@link CudaProbe}
 * lists the results for {@code symplan doctor}.
 */
@NullMarked
package dev.symplan.runtime.cuda.library;

import org.jspecify.annotations.NullMarked;
