/**
 * NVIDIA's libraries and driver on this machine.
 *
 * <p>{@link Libraries} finds driver, CUDA and NCCL, and loads them by file before the bindings ask
 * for them by {@code SONAME}. Nothing of this happens before somebody wants the backend. {@link
 * CudaProbe} lists what there is for {@code symplan doctor}.
 */
@NullMarked
package dev.symplan.runtime.cuda.library;

import org.jspecify.annotations.NullMarked;
