/** Instructions as work for GPUs: generated CUDA C++ and calls of libraries. */
@NullMarked
package dev.symplan.codegen.cuda;

import org.jspecify.annotations.NullMarked;
