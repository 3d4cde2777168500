/**
 * What a process of PyTorch calls when it has started a JVM of its own.
 *
 * <p>{@link Bridge#table} is the only method that goes through JNI: it gives the addresses of C
 * functions, which any thread may call. {@code samples/pytorch/symplan_torch.py} is the caller.
 * Graphs come as FX text, tensors as addresses; nothing of Java's crosses the border, exceptions
 * neither.
 */
@NullMarked
package dev.symplan.runtime.torch;

import org.jspecify.annotations.NullMarked;
