/**
 * The functions that a process of PyTorch calls after it has started a JVM.
 *
 * <p>{@link Bridge#table} is the only method that goes through JNI: it gives the addresses of C
 * functions, which any thread may call. {@code samples/pytorch/symplan_torch.py} is the caller.
 * Graphs come as FX text, tensors as addresses; no Java objects cross the border, and no
 * exceptions.
 */
@NullMarked
package dev.symplan.runtime.torch;

import org.jspecify.annotations.NullMarked;
