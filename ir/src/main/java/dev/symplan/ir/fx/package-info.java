/** Import of PyTorch FX graphs from the text that {@code print_readable} prints. */
@NullMarked
package dev.symplan.ir.fx;

import org.jspecify.annotations.NullMarked;
